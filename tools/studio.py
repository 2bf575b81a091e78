"""`python -m tools.studio`: build the Studio from `studio/` and the TypeScript SDK into `src/redkey/studio/assets`.

The built files are committed, so that nobody needs Node to use the Studio. If Node and the packages of `studio/` are
installed, `make verify` builds again and compares the bytes. It always compares a hash of the sources with the hash of
the last build, so that a change of the sources without a build is noticed even without Node.
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
    sources = [path for folder in (SOURCES, SDK) for path in folder.rglob("*") if path.is_file()]
    digest = sha256()
    for path in sorted(sources):
        name = path.relative_to(ROOT)
        if not set(_SKIPPED).intersection(name.parts):
            digest.update(b"%b %b\n" % (sha256(path.read_bytes()).hexdigest().encode(), name.as_posix().encode()))
    return digest.hexdigest()


def can_build() -> bool:
    """Return whether Node and the packages are installed."""
    return find_node() is not None and (SOURCES / "node_modules" / "vite").exists()


def build(target: Path) -> dict[str, bytes]:
    """Build into a folder; return the files by their names in the repository."""
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
    """Return the files of the package: built again, or as they are if nothing can be built here."""
    if can_build():
        with tempfile.TemporaryDirectory() as target:
            files = build(Path(target))
    else:
        print("Studio: not proved by a build, because Node or the packages are missing; its source hash is compared")
        committed = [path for path in (ROOT / FOLDER).rglob("*") if path.is_file()]
        files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in committed}
    return {**files, HASH: f"{source_hash()}\n".encode()}


def install() -> int:
    """Install the packages of `studio/` from its lock file."""
    node = find_node()
    if node is None:
        print("the Studio is built with Node, which is not installed")
        return 1
    # Not `npm ci`: it refuses a lock file without an optional package that the registry does not have.
    options = ["--ignore-scripts", "--no-save", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"]
    return subprocess.run([*node.npm, "install", *options, "--loglevel=error"], cwd=SOURCES, check=False).returncode


def main() -> int:
    """Build the Studio into the package and delete files that are no longer built."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="only install the packages of studio/")
    if parser.parse_args().install:
        return install()
    if not can_build() and install():
        return 1
    files = generated()
    for path in (ROOT / FOLDER).rglob("*"):
        if path.is_file() and path.relative_to(ROOT).as_posix() not in files:
            path.unlink()
    for name, data in files.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_bytes(data)
        print(f"{name}: {len(data):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
