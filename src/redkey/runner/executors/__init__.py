"""Executors: how an agent is called. One small port (`port`), and an adapter for each kind of agent."""
