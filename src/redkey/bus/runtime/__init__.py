"""The runtime above the bus: ownership of conversations, relays, and rules that end loops."""
