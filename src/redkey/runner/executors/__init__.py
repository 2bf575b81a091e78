"""Executors call an agent: one small interface (`port`), and one adapter for each kind of agent."""
