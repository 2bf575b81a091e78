"""The HTTP room: connections, exchanges, hosting, bounds, problems. Every HTTP door of RedKey stands on it."""
