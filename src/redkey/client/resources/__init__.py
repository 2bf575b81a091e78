"""The operations of the API, one module for each family of endpoints."""
