"""A substitute for a coding agent that adds one item to the shop. It edits files in its worktree, like Claude Code.

Every item goes to the top of `items.txt`, so agents that work at the same time conflict. To use a real agent:
`redkey run --claude-code` instead of `--exec`.
"""

import json
import sys
from pathlib import Path

given = json.load(sys.stdin)
item = given["task"]["params"]["item"]

Path("items").mkdir(exist_ok=True)
Path(f"items/{item}.txt").write_text(f"{item}\n")
listed = Path("items.txt")
listed.write_text(f"{item}\n{listed.read_text()}")

print(
    json.dumps(
        {"success": True, "summary": f"Added {item}.", "artifacts": [], "notes": [], "recommendation": "proceed"}
    )
)
