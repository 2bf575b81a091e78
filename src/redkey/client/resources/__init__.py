"""The operations of the API, one module for each family of endpoints: what is answered, and what can be asked."""
