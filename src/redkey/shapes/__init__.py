"""Shapes: the requests and replies of every operation, declared once.

Server, SDK, command line and OpenAPI all use these structs and these declarations, so that none of them can say
something else than the others. One module a family: its structs, then its operations.
"""
