"""The demo's server: `redkey serve` as it is, on the demo's tether."""

from __future__ import annotations

import sys

from redkey.cli import main
from redkey.cli.demo.tether import tether

if __name__ == "__main__":
    tether()
    main(["serve", *sys.argv[1:]])
