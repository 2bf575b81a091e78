"""What makes the generated files of this repository, and proves that they are current (`make verify`)."""
