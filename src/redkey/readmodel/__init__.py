"""The read model: the rows of a world, the usage meter, and the views that replies show."""
