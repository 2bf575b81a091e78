"""Use cases by family: what RedKey does, whichever door it is asked at."""
