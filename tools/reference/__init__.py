"""The reference under docs/reference, generated from what the code runs on: the routes, the contracts, the error tree,
the settings and the commands. `python -m tools.reference` writes it, `make verify` proves it current.
"""

from __future__ import annotations

from pathlib import Path

from tools.reference import bus_faces, commands, errors, events, http, settings, states

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "docs/reference"
_NOTE = "<!-- Written by `python -m tools.reference`; `make verify` proves it current. -->\n"


def generated() -> dict[str, bytes]:
    """Every page by its path from the root of the repository."""
    pages = {
        "bus-faces": bus_faces.page(),
        "commands": commands.page(),
        "errors": errors.page(),
        "events": events.page(),
        "http": http.page(),
        "settings": settings.page(),
        "states": states.page(),
    }
    return {f"{FOLDER}/{name}.md": (_NOTE + text.rstrip() + "\n").encode() for name, text in pages.items()}


def main() -> None:
    """Write all pages."""
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, data in generated().items():
        (ROOT / name).write_bytes(data)
