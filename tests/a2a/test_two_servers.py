"""Two servers of one ledger: a stream goes on at the other one, and so do the deliveries, when one is killed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.a2a.receiver import receiving
from tests.a2a.returning import Caller
from tests.a2a.talk import Worker
from tests.cluster.conftest import sealed
from tests.harness import acts
from tests.harness.patience import Patience
from tests.harness.postgres import database
from tests.harness.server import Server, serving

CONFIG = "[outbox]\nallow_private = true\nanswer_seconds = 60.0\n"
Pair = tuple[Server, Server]


@pytest.fixture(params=["files", "database"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Two servers, on one data directory or on one database. The first holds the locks that only one server has."""
    with ExitStack() as stack:
        if request.param == "files":
            started = [stack.enter_context(serving(tmp_path, config=CONFIG, name=name)) for name in ("one", "two")]
        else:
            url, environment, started = stack.enter_context(database()), sealed(), []
            for name in ("one", "two"):
                (tmp_path / name).mkdir()
                server = serving(tmp_path / name, "--store", url, environment=environment, config=CONFIG)
                started.append(stack.enter_context(server))
        yield started[0], started[1]


def kill(server: Server) -> None:
    server.process.kill()
    server.process.wait()


class Stream:
    """What one follower of a task got: each update and its id."""

    def __init__(self, caller: Caller, task_id: str, after: str) -> None:
        self._caller, self._task_id, self._after = caller, task_id, after
        self.got: list[tuple[str, dict[str, Any]]] = []

    def run(self) -> None:
        """Follow until the stream breaks or ends."""
        with suppress(httpx2.TransportError):
            for position, found in self._caller.stream(self._task_id, self._after):
                if "task" not in found:
                    self.got.append((position, found))


def test_a_stream_goes_on_at_the_other_server(servers: Pair) -> None:
    one, two = servers
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Work"}]}
    sent = {"message": message, "configuration": {"returnImmediately": True}}
    with (
        closing(Caller(one.url, one.key)) as at_one,
        closing(Caller(two.url, one.key)) as at_two,
        one.client() as owner,
        two.client(one.key) as other,
        ThreadPoolExecutor(3) as pool,
    ):
        worker = Worker(owner)
        first = at_one.post("/a2a/message:send", sent, "k-1")
        task_id = first["task"]["id"]
        beginning, _ = next(at_two.stream(task_id, ""))
        broken, whole = Stream(at_one, task_id, beginning), Stream(at_two, task_id, beginning)
        breaking, following = pool.submit(broken.run), pool.submit(whole.run)
        # Work at one server is seen by the followers of both.
        worker.take(task_id)
        worker.artifact(name="one", content="1")
        Patience(two.process.pid).until(lambda: len(broken.got) == len(whole.got) == 2, "an update is missing")
        kill(one)
        breaking.result()
        worker.client = other
        worker.artifact(name="two", content="2")
        rest = Stream(at_two, task_id, broken.got[-1][0])
        resuming = pool.submit(rest.run)
        worker.complete(output={"all": 2}, summary="Done.")
        following.result()
        resuming.result()
        assert broken.got + rest.got == whole.got
        assert [position for position, _ in whole.got] == [
            position for position, _ in at_two.stream(task_id, beginning)
        ][1:]
        assert len(whole.got) == 5
        # Sent again at the other server, the message is still the same one.
        assert at_two.post("/a2a/message:send", sent, "k-1") == first


def test_deliveries_go_on_at_the_other_server(servers: Pair) -> None:
    one, two = servers
    with receiving() as receiver, one.client() as owner, two.client(one.key) as other:
        reply = owner.post("/webhooks", {"receiverUrl": receiver.url, "types": ["task.created"]})
        assert reply.status == 201, reply.text
        acts.begin_queue(owner)
        made = [acts.create_task(owner), acts.create_task(other)]
        # One server delivers what both record, each event once.
        receiver.wait(2)
        receiver.hold_at = 3
        made += [acts.create_task(other) for _ in range(3)]
        receiver.wait(3)
        # The third was taken, and the server that sent it did not learn it: it comes again.
        kill(one)
        receiver.release()
        receiver.wait(6)
        made.append(acts.create_task(other))
        got = [(one.headers["webhook-id"], one.json["data"]["taskId"]) for one in receiver.wait(7)]
        assert got[2] == got[3]
        assert [task_id for _, task_id in dict(got).items()] == made
        assert len(got) == 7
