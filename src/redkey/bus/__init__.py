"""The bus (Weave): live talk between agents, over Unix sockets and HTTP."""
