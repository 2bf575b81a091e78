"""HTTP: one module for each endpoint family of seed 004, over one adapter, which checks each request and calls its use
case; the use cases decide."""
