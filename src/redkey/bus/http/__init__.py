"""The HTTP face of the bus: the same sessions, agents, messages and events, under `/api`."""
