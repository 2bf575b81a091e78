"""A server whose commits are not synced: `python tests/crash/planted_server.py -m redkey ARGUMENTS...`."""

from __future__ import annotations

import sys

from redkey.cli import main
from redkey.stores.sqlite import connection

connection.SETTINGS["synchronous"] = 1
connection._SAFE["synchronous"] = 1

if __name__ == "__main__":
    # What follows is "-m redkey", as for the interpreter.
    main(sys.argv[3:])
