"""`python -m redkey`: the command where no script is installed."""

from redkey.cli import main

main()
