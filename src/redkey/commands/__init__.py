"""WHAT MAY HAPPEN NEXT: world + command + now + ids -> wires or a refusal; `due` -> the wires that follow. Pure."""
