"""Content by its hash: uploaded and downloaded without being held in memory, and erased with a record."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, create_task
from tests.harness.server import Server

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
MIB = 1024 * 1024


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def peak_bytes(pid: int) -> int:
    """Return the peak memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 3 * MIB + 7])
def test_what_is_put_comes_back_under_its_hash(workspace: Workspace, size: int) -> None:
    data = os.urandom(size)
    kept = workspace.admin.put("/content", data)
    assert (kept.status, kept.json) == (201, {"sha256": digest(data), "bytes": size})
    back = workspace.admin.get(f"/content/{digest(data)}")
    assert (back.content, back.headers["etag"]) == (data, f'"{digest(data)}"')
    bare = workspace.admin.request("HEAD", f"/content/{digest(data)}")
    assert (bare.content, bare.headers["content-length"]) == (b"", str(size))


def test_putting_it_again_changes_nothing(workspace: Workspace) -> None:
    data = os.urandom(100_000)
    replies = [workspace.admin.put("/content", data) for _ in range(3)]
    assert len({reply.content for reply in replies}) == 1


def test_a_body_with_a_wrong_hash_is_not_stored(workspace: Workspace) -> None:
    data, other = b"one", digest(b"two")
    refused = workspace.admin.put(f"/content?sha256={other}", data)
    assert (refused.status, refused.json["code"]) == (422, "content_hash")
    assert workspace.admin.get(f"/content/{digest(data)}").status == 404
    assert workspace.admin.put(f"/content?sha256={digest(data)}", data).status == 201


def test_a_large_body_passes_through_without_being_held_in_memory(start: Callable[..., Server]) -> None:
    size = (1024 if LONG else 192) * MIB
    server = start()
    with server.client() as client:
        client.put("/content", b"warm")
        before = peak_bytes(server.process.pid)
        block = os.urandom(MIB)
        whole = hashlib.sha256()

        def blocks() -> Iterator[bytes]:
            for _ in range(size // MIB):
                whole.update(block)
                yield block

        kept = client.request("PUT", "/content", content=blocks())
        assert (kept.status, kept.json["bytes"], kept.json["sha256"]) == (201, size, whole.hexdigest())
        back = hashlib.sha256()
        with client.http.stream("GET", f"/content/{whole.hexdigest()}") as response:
            for piece in response.iter_bytes():
                back.update(piece)
        assert back.hexdigest() == whole.hexdigest()
        assert peak_bytes(server.process.pid) - before < 48 * MIB


def test_a_body_above_the_limit_is_refused_and_nothing_is_stored(start: Callable[..., Server]) -> None:
    server = start(config="[limits]\ncontent_bytes = 100000\n")
    with server.client() as client:
        assert client.put("/content", b"x" * 100_001).status == 413
        chunked = client.request("PUT", "/content", content=(b"x" * 10_000 for _ in range(20)))
        assert (chunked.status, chunked.json["code"]) == (413, "body_too_large")
        assert list((server.data / "content" / "incoming").iterdir()) == []
        assert client.put("/content", b"x" * 100_000).status == 201


def test_an_incomplete_body_is_not_stored(workspace: Workspace) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise ConnectionError

    with pytest.raises(ConnectionError):
        workspace.admin.request("PUT", "/content", content=broken())
    workspace.admin.put("/content", b"another")
    incoming = workspace.server.data / "content" / "incoming"
    assert list(incoming.iterdir()) == []


def test_what_a_killed_server_was_receiving_is_removed_at_the_next_start(start: Callable[..., Server]) -> None:
    server = start()
    abandoned = server.data / "content" / "incoming" / "left"
    abandoned.write_bytes(b"x")
    server.process.kill()
    server.process.wait()
    start(name="again")
    assert not abandoned.exists()


@pytest.mark.parametrize("size", [10, 100_000])
def test_erased_content_is_gone_and_on_the_record(workspace: Workspace, size: int) -> None:
    data = os.urandom(size)
    workspace.admin.put("/content", data)
    path = f"/content/{digest(data)}"
    erased = workspace.admin.delete(path)
    assert (erased.status, erased.json["status"]) == (200, "erased")
    event = workspace.admin.get(f"/events/{erased.json['eventId']}").json
    assert (event["type"], event["data"]["sha256"]) == ("content.erased", digest(data))
    assert workspace.admin.get(path).status == 404
    assert workspace.admin.delete(path).status == 404
    assert workspace.admin.put("/content", data).status == 201
    assert workspace.admin.get(path).content == data


def test_structure_that_replay_needs_stays(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    roles = [f"r{number}" for number in range(6)]
    for role in roles:
        admin.post("/roles", {"name": role})
    task_id = create_task(admin, requiredRoles=roles)
    created = admin.get(f"/tasks/{task_id}/events").json["items"][0]
    refused = admin.delete(f"/content/{created['data']['structureRef']['sha256']}")
    assert (refused.status, refused.json["code"]) == (409, "content_pinned")
    assert refused.headers["x-should-retry"] == "false"


def test_content_belongs_to_its_workspace(workspace: Workspace, other: Workspace) -> None:
    data = os.urandom(50)
    workspace.admin.put("/content", data)
    path = f"/content/{digest(data)}"
    missing = other.admin.get(f"/content/{'0' * 64}")
    for reply in (other.admin.get(path), other.admin.delete(path)):
        assert (reply.status, reply.content) == (404, missing.content)
    assert workspace.admin.get(path).content == data


@pytest.mark.parametrize("name", ["x", "..", "0" * 63, "G" * 64, "A" * 64])
def test_what_is_not_a_hash_names_nothing(workspace: Workspace, name: str) -> None:
    if name != "..":
        assert workspace.admin.get(f"/content/{name}").status == 404


def test_a_reader_may_look_and_not_put(workspace: Workspace) -> None:
    reader: Any = workspace.caller("read")
    assert reader.put("/content", b"x").status == 403
    assert reader.delete(f"/content/{digest(b'x')}").status == 403
    workspace.admin.put("/content", b"x")
    assert reader.get(f"/content/{digest(b'x')}").content == b"x"
