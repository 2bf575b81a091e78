"""Agents at work: a card, a brief and a program in, verified work out. Speaks to the server by the SDK alone."""
