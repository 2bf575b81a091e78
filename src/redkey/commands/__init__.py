"""What may happen next: a command is decided against the world and becomes wires or a refusal; `due` returns the wires
that follow from records and time. No I/O, no clock, no randomness: time and ids are passed in."""
