"""Fetch the artifacts of earlier tasks into the directory of a step.

They go into `.redkey/`, which git ignores, so an agent that commits everything commits only its own work. A repository
may have links of that name, so nothing is written through a link.
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
    """Fetch artifacts from the server. Return paths by name, and the URIs of artifacts that are stored elsewhere.

    The claim of a plan's task lists its artifacts; those of other tasks (`depends_on`) are requested.
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
    """Return the artifacts of a task on which another one depends."""
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
