"""HTTP: one module per endpoint family of seed 004, over one thin ASGI adapter. It decides nothing: handlers turn
requests into commands and outcomes into replies."""
