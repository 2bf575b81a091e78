"""What a step works from, brought into its directory: the artifacts of the tasks before, by name.

They lie under `.redkey/`, which git is told to leave alone: an agent that commits everything commits its own work only.
A repository may hold links of that name, so nothing is written through one.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence
from pathlib import Path

from redkey.client import Assignment, RedKey
from redkey.errors import OutputRefused, WorkplaceRefused
from redkey.runner.artifacts import put_file
from redkey.shapes.tasks import Upstream

FOLDER = ".redkey"
_LARGEST = 1024 * 1024 * 1024


async def fetch(
    rk: RedKey, task: Assignment, directory: Path, depends_on: Sequence[str] = ()
) -> dict[str, str | tuple[str, ...]]:
    """Fetch what is at the server; the paths by name, and the URIs of what lies elsewhere.

    A claim tells the artifacts of a plan's tasks; those of tasks outside of plans (`depends_on`) are asked for.
    """
    paths: dict[str, str | tuple[str, ...]] = {}
    known = {one.name for one in task.upstream}
    before = [one for task_id in depends_on for one in await asyncio.to_thread(_made_by, rk, task_id)]
    for one in (*task.upstream, *(one for one in before if one.name not in known)):
        if one.uri:
            paths[one.name] = one.uri
        elif not one.erased:
            paths[one.name] = await asyncio.to_thread(_fetch, rk, one, directory)
    return paths


def _made_by(rk: RedKey, task_id: str) -> list[Upstream]:
    """The artifacts of a task that another one depends on."""
    return [
        Upstream(
            name=one.name,
            artifact_id=one.artifact_id,
            task_id=task_id,
            plan_task_id="",
            version=one.version,
            sha256=one.sha256,
            bytes=one.bytes,
            media_type=one.media_type,
            uri=one.uri,
            erased=one.erased,
        )
        for one in rk.tasks.get(task_id).artifacts
    ]


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
