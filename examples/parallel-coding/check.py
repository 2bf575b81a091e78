"""The check that every commit must pass: each listed item has a file, and each file is listed once."""

import sys
from pathlib import Path

listed = Path("items.txt").read_text().split()
files = [path.stem for path in Path("items").glob("*.txt")]
if sorted(listed) != sorted(files):
    sys.exit(f"the list has {sorted(listed)}, the files are {sorted(files)}")
