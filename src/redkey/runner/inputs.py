"""What a step works from, brought into its directory: the artifacts of the tasks before, by name.

They lie under `.redkey/`, which git is told to leave alone: an agent that commits everything commits its own work only.
A repository may hold links of that name, so nothing is written through one.
"""

from __future__ import annotations

import asyncio
import mimetypes
from pathlib import Path

from redkey.client import Assignment, RedKey
from redkey.client.resources.claims import Upstream
from redkey.errors import OutputRefused, WorkplaceRefused
from redkey.runner.artifacts import put_file

FOLDER = ".redkey"
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
    ending = "" if Path(one.name).suffix else ".md" if one.media_type == "text/markdown" else _ending(one.media_type)
    path = f"{FOLDER}/inputs/{one.name}{ending}"
    if one.bytes > _LARGEST:
        raise WorkplaceRefused(f"{one.name} has {one.bytes:,} bytes: too many to fetch", code="input_too_large")
    try:
        put_file(directory, f"{FOLDER}/.gitignore", [b"*\n"])
        put_file(directory, path, rk.content.pieces(one.sha256))
    except OutputRefused as refused:
        raise WorkplaceRefused(refused.message, code="input_place") from refused
    return path


def _ending(media_type: str) -> str:
    return mimetypes.guess_extension(media_type.partition(";")[0]) or ""
