"""The runtime above the bus: who owns a conversation, what is relayed to whom, and when talk must stop."""
