"""`python -m tools.reference`."""

from tools.reference import main

main()
