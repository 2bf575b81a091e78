"""Convert the results of a remote agent into artifacts, files and a summary.

An agent that knows RedKey returns an output envelope, which is used as it is. Artifacts of other agents become files:
text, data and bytes unchanged, and a URL as a file that names it.
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
    """Build the output of a completed task. `said` is the text of its last status, `parts` the parts of its message."""
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
        # The agent answered with a message only: its text is the result.
        for index, part in enumerate(parts):
            made = _write("answer", index, part, directory, names)
            if made is not None:
                written.append(made)
    return StepOutput(
        True, said[:_SUMMARY] or f"The remote agent returned {len(names)} files.", tuple(written), "proceed"
    )


def words_of(parts: Sequence[Any]) -> str:
    """Join the text of some parts into one line."""
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
    """Yield candidates for an envelope: the whole text, and objects that begin a line."""
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

    # A2A turns every number into a double; canonical JSON writes whole numbers without a fraction.
    return json.loads(canonical(json_format.MessageToDict(part.data)))


def _write(name: str, index: int, part: Any, directory: Path, names: set[str]) -> StepArtifact | None:
    """Convert one part to a file: text is declared as an artifact, bytes are written into the directory."""
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
    """Return a plain file name that no other part uses."""
    safe = _UNSAFE.sub("-", name.replace("\\", "/").rpartition("/")[2]).strip("-.") or "result"
    stem, dot, given = safe.rpartition(".")
    if not dot or ending == ".url":
        stem, given = safe, ending.lstrip(".")
    path = f"{stem[:80]}.{given[:16]}"
    if path in names:
        path = f"{stem[:80]}-{index + 1}-{len(names)}.{given[:16]}"
    names.add(path)
    return path
