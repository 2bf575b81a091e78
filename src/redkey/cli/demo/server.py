"""The demo's server: the unchanged `redkey serve`, which ends with the demo."""

from __future__ import annotations

import sys

from redkey.cli import main
from redkey.cli.demo.tether import tether

if __name__ == "__main__":
    tether()
    main(["serve", *sys.argv[1:]])
