"""The check that every commit must pass: each item of the list has its file, once, and the other way round."""

import sys
from pathlib import Path

listed = Path("items.txt").read_text().split()
files = [path.stem for path in Path("items").glob("*.txt")]
if sorted(listed) != sorted(files):
    sys.exit(f"the list has {sorted(listed)}, the files are {sorted(files)}")
