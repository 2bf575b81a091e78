"""Workspaces that a topic of a public network orders: what follows from its messages, and how requests get there."""
