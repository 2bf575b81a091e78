"""`make verify`: prove that every generated file is what its generator writes today, and that no other file remains."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools import events, fixtures, reference, screenshots, sdk, seeds, studio, typescript

ROOT = Path(__file__).resolve().parents[1]

# (title, the generated file or folder, the generator, the command that writes the files)
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


def stale(place: str, expected: dict[str, bytes]) -> list[str]:
    """List what is wrong with a generated file or folder."""
    paths = [ROOT / place, *(ROOT / place).rglob("*")]
    actual = {path.relative_to(ROOT).as_posix() for path in paths if _is_source(path)}
    wrong = [f"{name}: is missing" for name in sorted(expected.keys() - actual)]
    wrong += [f"{name}: no generator writes it" for name in sorted(actual - expected.keys())]
    return wrong + [
        f"{name}: is not current"
        for name in sorted(expected.keys() & actual)
        if (ROOT / name).read_bytes() != expected[name]
    ]


def _is_source(path: Path) -> bool:
    """Return whether a file is source; Python writes its caches beside modules."""
    return path.is_file() and "__pycache__" not in path.parts


def main() -> int:
    """Compare all generated files and return the exit code."""
    failed = 0
    for title, place, generate, command in GENERATORS:
        files = generate()
        wrong = stale(place, files)
        state = f"{len(wrong)} wrong; write them with: {command}" if wrong else "current"
        print(f"{title}: {len(files)} files, {state}")
        for line in wrong:
            print(f"  {line}")
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
