"""`make verify`: prove that every generated file is what its generator writes today, and that none is left over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools import events, fixtures, reference, screenshots, sdk, seeds, studio, typescript

ROOT = Path(__file__).resolve().parents[1]

# (what it writes, the file, or the folder with nothing else, the generator, how to write the files again)
GENERATORS: list[tuple[str, str, Callable[[], dict[str, bytes]], str]] = [
    ("event structs", events.FILE, events.generated, "python -m tools.events"),
    ("derived fixtures", fixtures.FOLDER, fixtures.generated, "python -m tools.fixtures"),
    ("SDK calls", sdk.FOLDER, sdk.generated, "python -m tools.sdk"),
    ("reference", reference.FOLDER, reference.generated, "python -m tools.reference"),
    ("table of the seeds", seeds.PAGE, seeds.generated, "python -m tools.seeds"),
    ("pictures", screenshots.FOLDER, screenshots.generated, "python -m tools.screenshots"),
    ("Studio", studio.FOLDER, studio.generated, "python -m tools.studio"),
    ("TypeScript", typescript.FOLDER, typescript.generated, "python -m tools.typescript"),
]


def stale(place: str, made: dict[str, bytes]) -> list[str]:
    """List what is wrong with a generated file or a folder of them."""
    found = [ROOT / place, *(ROOT / place).rglob("*")]
    there = {path.relative_to(ROOT).as_posix() for path in found if _is_source(path)}
    wrong = [f"{name}: is missing" for name in sorted(made.keys() - there)]
    wrong += [f"{name}: nothing makes it" for name in sorted(there - made.keys())]
    return wrong + [
        f"{name}: is not current" for name in sorted(made.keys() & there) if (ROOT / name).read_bytes() != made[name]
    ]


def _is_source(path: Path) -> bool:
    """Return whether a file is source; Python writes its caches beside modules."""
    return path.is_file() and "__pycache__" not in path.parts


def main() -> int:
    failed = 0
    for title, place, generate, command in GENERATORS:
        made = generate()
        wrong = stale(place, made)
        print(f"{title}: {len(made)} files, {f'{len(wrong)} wrong; make them with: {command}' if wrong else 'current'}")
        for line in wrong:
            print(f"  {line}")
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
