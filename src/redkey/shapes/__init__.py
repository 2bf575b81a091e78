"""Shapes: the requests and replies of every operation, declared once.

Server, SDK, command line and OpenAPI all use these structs and declarations, so they always agree. There is one module
for each family: its structs, then its operations.
"""
