"""The environments of peers: one virtual environment each, and unpacked Debian packages, under `.bench/`.

Nothing is installed into the product's environment or into the system. What cannot be installed is `Missing`, with the
reason.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(__file__).resolve().parents[2] / ".bench"
INSTALL_SECONDS = 300


class Missing(Exception):
    """A peer that cannot be installed or started here; it is reported, and its figures are not guessed."""


def python_with(name: str, packages: tuple[str, ...]) -> Path:
    """The Python of an environment with exactly these packages, on the interpreter that runs this. It is created once,
    and again when either changes. Peers and product use the same interpreter, so that a ratio compares only them."""
    folder, wanted = HOME / "environments" / name, "\n".join([sys.version, *packages])
    python, mark = folder / "bin" / "python", folder / "installed.txt"
    if mark.exists() and mark.read_text() == wanted:
        return python
    print(f"  installing {name}: {', '.join(packages)}", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    mark.write_text(wanted)
    return python


def debian(package: str) -> Path:
    """The folder with the unpacked files of a Debian package, fetched by the machine's own package client."""
    folder = HOME / "debian" / package
    if not (folder / "usr").exists():
        print(f"  fetching {package}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "download", "-qq", package], folder)
        for archive in folder.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(archive), str(folder)])
    return folder


def version_of(python: Path, distribution: str) -> str:
    """The version that is actually installed there."""
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _run(command: list[str], folder: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except FileNotFoundError as absent:
        raise Missing(f"{command[0]} is not on this machine") from absent
    except subprocess.TimeoutExpired as late:
        raise Missing(f"{command[0]} took longer than {INSTALL_SECONDS} s") from late
    except subprocess.CalledProcessError as failed:
        last = (failed.stderr or failed.stdout or "").strip().splitlines()
        raise Missing(last[-1] if last else f"{command[0]} ended with {failed.returncode}") from failed


PRODUCT = Path(sys.executable)
