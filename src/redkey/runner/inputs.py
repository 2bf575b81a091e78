"""What a step works from, brought into its directory: the artifacts of the tasks before, under `inputs/`, by name."""

from __future__ import annotations

import asyncio
import mimetypes
from pathlib import Path

from redkey.client import Assignment, RedKey
from redkey.client.resources.claims import Upstream
from redkey.errors import WorkplaceRefused

FOLDER = "inputs"
_LARGEST = 1024 * 1024 * 1024


async def fetch(rk: RedKey, task: Assignment, directory: Path) -> dict[str, str | tuple[str, ...]]:
    """Fetch what is at the server; the paths by name, and the URIs of what lies elsewhere."""
    paths: dict[str, str | tuple[str, ...]] = {}
    for one in task.upstream:
        if one.uri:
            paths[one.name] = one.uri
        elif not one.erased:
            paths[one.name] = await asyncio.to_thread(_fetch, rk, one, directory)
    return paths


def _fetch(rk: RedKey, one: Upstream, directory: Path) -> str:
    """Write an artifact below the directory; the server's names are slugs, so they lead nowhere else."""
    ending = "" if Path(one.name).suffix else ".md" if one.media_type == "text/markdown" else _ending(one.media_type)
    path = directory / FOLDER / f"{one.name}{ending}"
    if one.bytes > _LARGEST:
        raise WorkplaceRefused(f"{one.name} has {one.bytes:,} bytes: too many to fetch", code="input_too_large")
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as out:
            for piece in rk.content.pieces(one.sha256):
                out.write(piece)
    except OSError as cause:
        raise WorkplaceRefused(f"{path.name} cannot be written: {cause.strerror}") from cause
    return f"{FOLDER}/{path.name}"


def _ending(media_type: str) -> str:
    return mimetypes.guess_extension(media_type.partition(";")[0]) or ""
