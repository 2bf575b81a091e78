"""A data directory and receipts that the first version made."""

from __future__ import annotations

import tarfile
from pathlib import Path

_ARCHIVE = Path(__file__).parent / "first-version.tar.xz"


def unpacked(folder: Path) -> Path:
    """What the first version left, unpacked into a folder."""
    with tarfile.open(_ARCHIVE) as archive:
        # Python before 3.11.4 knows no filter; the archive is our own.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safe)  # noqa: S202
    return folder / "first-version"
