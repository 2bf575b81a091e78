"""Workspaces whose order is a topic of a public network: what follows from its messages, and how requests get there."""
