"""`python -m tools.studio`: build the Studio from `studio/` and the TypeScript SDK into `src/redkey/studio/assets`.

The built files are committed, so that nobody needs Node to use the Studio. Where Node and the packages of `studio/`
are there, `make verify` builds again and compares the bytes. In any case it compares a hash of the sources with the
one that the last build left, so that sources that were changed without a build are noticed without Node.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from tools.node import find_node

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "studio"
SDK = ROOT / "sdk" / "typescript" / "src"
FOLDER = "src/redkey/studio/assets"
HASH = f"{FOLDER}/sources.sha256"
_SKIPPED = ("node_modules", ".svelte-kit", "shots")


def source_hash() -> str:
    """Return one hash over the names and bytes of everything that the build reads."""
    found = [path for folder in (SOURCES, SDK) for path in folder.rglob("*") if path.is_file()]
    digest = sha256()
    for path in sorted(found):
        name = path.relative_to(ROOT)
        if not set(_SKIPPED).intersection(name.parts):
            digest.update(b"%b %b\n" % (sha256(path.read_bytes()).hexdigest().encode(), name.as_posix().encode()))
    return digest.hexdigest()


def can_build() -> bool:
    """Return whether Node and the packages are there."""
    return find_node() is not None and (SOURCES / "node_modules" / "vite").exists()


def build(target: Path) -> dict[str, bytes]:
    """Build into a folder: the files by their names in the repository."""
    node = find_node()
    if node is None:
        raise SystemExit("the Studio is built with Node: install it, or run python -m tools.node")
    vite = [node.node, "node_modules/vite/bin/vite.js", "build", "--outDir", str(target), "--emptyOutDir"]
    built = subprocess.run([*vite, "--logLevel", "warn"], cwd=SOURCES, capture_output=True, text=True, check=False)
    if built.returncode:
        raise SystemExit(built.stdout + built.stderr)
    files = {f"{FOLDER}/{path.relative_to(target).as_posix()}": path for path in target.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items()}


def generated() -> dict[str, bytes]:
    """Return what belongs into the package: built anew, or as it is where nothing can be built."""
    if can_build():
        with tempfile.TemporaryDirectory() as target:
            made = build(Path(target))
    else:
        print("Studio: not proved by a build, no Node or no packages; the hash of its sources is compared")
        kept = [path for path in (ROOT / FOLDER).rglob("*") if path.is_file()]
        made = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in kept}
    return {**made, HASH: f"{source_hash()}\n".encode()}


def install() -> int:
    """Install the packages of `studio/` from its lock file."""
    node = find_node()
    if node is None:
        print("the Studio is built with Node, which is not here")
        return 1
    # Not `npm ci`: it refuses a lock file that lacks an optional package which the registry does not have.
    options = ["--ignore-scripts", "--no-save", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"]
    return subprocess.run([*node.npm, "install", *options, "--loglevel=error"], cwd=SOURCES, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="install the packages of studio/, and build nothing")
    if parser.parse_args().install:
        return install()
    if not can_build() and install():
        return 1
    made = generated()
    for path in (ROOT / FOLDER).rglob("*"):
        if path.is_file() and path.relative_to(ROOT).as_posix() not in made:
            path.unlink()
    for name, data in made.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_bytes(data)
        print(f"{name}: {len(data):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
