"""WHAT AN EVENT IS: envelope, event catalogue, canonical bytes, validation, older wires, cards, steps."""
