"""Live events: no gaps, no duplicates, resumable, limited."""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, gauge, head, register, until
from tests.harness.client import Client
from tests.harness.server import Server


class Follower:
    """Reads a stream in a thread as (id, type, data); a bare cursor has no type."""

    def __init__(self, client: Client, path: str, headers: dict[str, str] | None = None) -> None:
        address = urlsplit(client.url)
        self._connection = HTTPConnection(address.hostname or "", address.port, timeout=60)
        self._connection.request("GET", path, headers={"authorization": f"Bearer {client.key}", **(headers or {})})
        self._response = self._connection.getresponse()
        self.status, self.media = self._response.status, self._response.headers["content-type"]
        self.heard: queue.Queue[tuple[int, str, Any]] = queue.Queue()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        while line := self._response.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value
                continue
            data = json.loads(fields["data"]) if "data" in fields else None
            self.heard.put((int(fields["id"]), fields.get("event", ""), data))
            fields = {}

    def take(self, count: int) -> list[tuple[int, str, Any]]:
        """Return the next events, without cursors."""
        found = []
        while len(found) < count:
            one = self.heard.get(timeout=30)
            if one[1]:
                found.append(one)
        return found

    def close(self) -> None:
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        self._connection.close()
        self._response.close()


@contextmanager
def following(workspace: Workspace, path: str, **headers: str) -> Iterator[Follower]:
    follower = Follower(workspace.admin, path, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        yield follower
    finally:
        follower.close()


def test_events_come_as_they_happen_with_their_place_as_id(workspace: Workspace) -> None:
    before = head(workspace.admin)
    with following(workspace, "/stream") as follower:
        assert (follower.status, follower.media) == (200, "text/event-stream")
        begin_queue(workspace.admin)
        create_task(workspace.admin)
        events = follower.take(3)
    assert [one[1] for one in events] == ["queue.created", "task.created", "task.available"]
    assert [one[0] for one in events] == [before + 1, before + 2, before + 3]
    stored = workspace.admin.get(f"/ledger/query?after={before}").json["items"]
    assert [one[2] for one in events] == stored


@pytest.mark.parametrize("how", ["header", "parameter"])
def test_a_follower_that_comes_back_misses_nothing_and_sees_nothing_twice(workspace: Workspace, how: str) -> None:
    begin_queue(workspace.admin)
    with following(workspace, "/stream?after=0") as follower:
        first = [one[0] for one in follower.take(3)]
    for _ in range(30):
        create_task(workspace.admin)
    last = first[-1]
    again = (
        following(workspace, "/stream", last_event_id=str(last))
        if how == "header"
        else following(workspace, f"/stream?after={last}")
    )
    with again as follower:
        create_task(workspace.admin)
        total = head(workspace.admin)
        rest = [one[0] for one in follower.take(total - last)]
    assert first + rest == list(range(1, total + 1))


def test_many_events_while_following_keep_their_order(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    start = head(workspace.admin)
    with following(workspace, "/stream") as follower:

        def produce() -> None:
            with workspace.server.client(workspace.admin.key) as client:
                for _ in range(20):
                    create_task(client)

        threads = [threading.Thread(target=produce) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one[0] for one in follower.take(200)] == list(range(start + 1, start + 201))


def test_filters_show_what_was_asked_for(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    begin_queue(admin, "queue_other")
    one, two = (register(admin, name)["agentId"] for name in ("One", "Two"))
    start = head(admin)
    task_id = create_task(admin)
    create_task(admin, "queue_other")
    claim(admin, task_id, one)
    claim(admin, task_id, two)
    path = f"/stream?after={start}&"
    wanted = {
        "types=task.claimed,task.claim_missed": ["task.claimed", "task.claim_missed"],
        f"agentId={two}": ["task.claim_attempted", "task.claim_missed"],
        "queueId=queue_other": ["task.created", "task.available"],
        f"queueId=queue_q&types=task.claimed&agentId={one}": ["task.claimed"],
    }
    for query, types in wanted.items():
        with following(workspace, path + query) as follower:
            assert [event[1] for event in follower.take(len(types))] == types, query


def test_an_agent_follows_the_claims_it_misses(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    winner, loser = (register(admin, name)["agentId"] for name in ("Winner", "Loser"))
    path = f"/agents/{loser}/events?type=task.claim_missed"
    with following(workspace, path, accept="text/event-stream") as follower:
        task_id = create_task(admin)
        claim(admin, task_id, winner)
        missed = claim(admin, task_id, loser)
        (event,) = follower.take(1)
    assert event[2]["eventId"] == missed["eventId"]
    assert event[2]["data"]["winningAgentId"] == winner


def test_head_of_a_stream_ends(workspace: Workspace) -> None:
    agent_id = register(workspace.admin)["agentId"]
    path, accept = f"/agents/{agent_id}/events", {"accept": "text/event-stream"}
    assert workspace.admin.request("HEAD", path, headers=accept).status == 200


@pytest.mark.parametrize("cursor", ["-1", "x", "99999999999999999999", "1.5"])
def test_a_cursor_that_is_none_is_refused(workspace: Workspace, cursor: str) -> None:
    reply = workspace.admin.get("/stream", headers={"last-event-id": cursor})
    assert (reply.status, reply.json["code"]) == (422, "cursor_invalid")


def test_a_cursor_beyond_the_head_is_refused(workspace: Workspace) -> None:
    reply = workspace.admin.get("/stream", headers={"last-event-id": "100000"})
    assert (reply.status, reply.json["code"]) == (422, "cursor_beyond_head")


def test_a_filtered_stream_gets_a_bare_cursor_near_the_head(start: Callable[..., Server]) -> None:
    server = start(config="[limits]\ncursor_seconds = 0.2\n")
    with server.client() as client:
        begin_queue(client)
        follower = Follower(client, "/stream?types=task.claimed")
        create_task(client)
        last = head(client)
        until(lambda: (last, "", None) in list(follower.heard.queue))
        follower.close()


def test_commits_of_another_process_are_seen(start: Callable[..., Server]) -> None:
    first, second = start(), start(name="second")
    with first.client() as one, second.client() as two:
        follower = Follower(two, "/stream")
        begin_queue(one)
        assert [event[1] for event in follower.take(1)] == ["queue.created"]
        follower.close()


def test_there_are_not_more_followers_than_allowed(start: Callable[..., Server]) -> None:
    server = start(config="[limits]\nsubscribers = 2\n")
    with server.client() as client:
        followers = [Follower(client, "/stream") for _ in range(2)]
        refused = client.get("/stream")
        assert (refused.status, refused.json["code"]) == (503, "too_many_subscribers")
        assert refused.headers["retry-after"]
        followers[0].close()
        until(lambda: gauge(server.url, "redkey_subscribers") == 1)
        followers.append(Follower(client, "/stream"))
        assert followers[-1].status == 200
        for follower in followers[1:]:
            follower.close()


def test_a_follower_that_never_reads_is_disconnected_without_effect_on_others(start: Callable[..., Server]) -> None:
    server = start(config="[limits]\nstalled_seconds = 0.5\n")
    address = urlsplit(server.url)
    with server.client() as client, socket.socket() as stalled:
        begin_queue(client)
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        stalled.connect((address.hostname, address.port))
        asked = f"GET /stream?after=0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key}\r\n\r\n"
        stalled.sendall(asked.encode())
        until(lambda: gauge(server.url, "redkey_subscribers") == 1)
        deadline = time.monotonic() + 120
        while gauge(server.url, "redkey_subscribers") == 1:
            assert time.monotonic() < deadline
            body = {"tasks": [{"title": "t"} for _ in range(200)]}
            assert client.post("/queues/queue_q/tasks/batch", body).status == 200
        assert client.get("/queues").status == 200
