"""Memories of agents, per agent and workspace; the nearest ones are recalled for the next task."""
