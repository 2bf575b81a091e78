"""WHAT WE SHOW: the rows of a world, the meter, and the views that the API gives of them."""
