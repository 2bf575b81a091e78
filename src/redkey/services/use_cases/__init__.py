"""Use cases by family: what RedKey does, the same for every interface."""
