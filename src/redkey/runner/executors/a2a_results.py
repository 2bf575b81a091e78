"""What a remote agent's results become: artifacts that the runner writes, files in its directory, a summary.

An agent that knows RedKey hands back an output envelope, which is taken as it is. Any other agent's artifacts are
files: text and data as they are, bytes as they came, and what is elsewhere by its URL.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from redkey.runner.envelope import read_output
from redkey.wire.canonical import canonical
from redkey.wire.step import StepArtifact, StepOutput, kind_of

_ENDINGS = {"text/markdown": ".md", "text/plain": ".txt", "application/json": ".json", "text/html": ".html"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SUMMARY = 2000


def read_results(artifacts: Sequence[Any], said: str, parts: Sequence[Any], directory: Path) -> StepOutput:
    """The output of a task that has ended well. `said` are the words of its last status, `parts` its message."""
    for group in (*(artifact.parts for artifact in reversed(artifacts)), parts):
        for part in group:
            envelope = _envelope(part)
            if envelope is not None:
                return envelope
    written, names = [], set[str]()
    for artifact in artifacts:
        for index, part in enumerate(artifact.parts):
            made = _write(artifact.name or artifact.artifact_id, index, part, directory, names)
            if made is not None:
                written.append(made)
    if not artifacts:
        # An agent that answers with a message alone: what it said is the result.
        for index, part in enumerate(parts):
            made = _write("answer", index, part, directory, names)
            if made is not None:
                written.append(made)
    return StepOutput(
        True, said[:_SUMMARY] or f"The remote agent returned {len(names)} files.", tuple(written), "proceed"
    )


def words_of(parts: Sequence[Any]) -> str:
    """The text of some parts, in one line."""
    return " ".join(" ".join(part.text.split()) for part in parts if part.text).strip()


def _envelope(part: Any) -> StepOutput | None:
    kind = part.WhichOneof("content")
    if kind == "data":
        value = _data(part)
        return read_output(json.dumps(value).encode()) if kind_of(value) == "output" else None
    if kind != "text":
        return None
    for candidate in _objects(part.text):
        if kind_of(candidate) == "output":
            return read_output(part.text.encode())
    return None


def _objects(text: str) -> Iterator[Any]:
    """The objects that may be an envelope: all of the text, or one that begins a line of it."""
    decoder = json.JSONDecoder()
    for found in [re.match(r"\s*", text), *re.finditer(r"^(?=\{)", text, re.MULTILINE)]:
        if found is None:
            continue
        try:
            yield decoder.raw_decode(text, found.end())[0]
        except (ValueError, RecursionError):
            continue


def _data(part: Any) -> Any:
    from google.protobuf import json_format

    # A2A makes every number a double; canonical JSON writes whole ones without a fraction.
    return json.loads(canonical(json_format.MessageToDict(part.data)))


def _write(name: str, index: int, part: Any, directory: Path, names: set[str]) -> StepArtifact | None:
    """One part as a file: declared where it is text, written where it is bytes."""
    kind = part.WhichOneof("content")
    media = part.media_type.partition(";")[0].strip()
    ending = _ENDINGS.get(media) or (mimetypes.guess_extension(media) if media else None)
    if kind == "text":
        content, ending = part.text, ending or ".txt"
    elif kind == "data":
        content, ending = json.dumps(_data(part), ensure_ascii=False, indent=2) + "\n", ".json"
    elif kind == "url":
        content, ending = part.url + "\n", ".url"
    else:
        content, ending = "", ending or ".bin"
    path = _free(part.filename or name, ending, index, names)
    if kind == "raw":
        (directory / path).write_bytes(part.raw)
        return None
    return StepArtifact(path, "update" if (directory / path).exists() else "create", content)


def _free(name: str, ending: str, index: int, names: set[str]) -> str:
    """A plain file name that no other part has."""
    safe = _UNSAFE.sub("-", name.replace("\\", "/").rpartition("/")[2]).strip("-.") or "result"
    stem, dot, given = safe.rpartition(".")
    if not dot or ending == ".url":
        stem, given = safe, ending.lstrip(".")
    path = f"{stem[:80]}.{given[:16]}"
    if path in names:
        path = f"{stem[:80]}-{index + 1}-{len(names)}.{given[:16]}"
    names.add(path)
    return path
