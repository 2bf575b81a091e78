"""What agents remember: per agent and workspace, recalled by nearness to what they are about to do."""
