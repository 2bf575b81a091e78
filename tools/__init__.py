"""Generators of files in this repository, and checks (`make verify`, `make check`)."""
