"""A stream goes on over servers that are killed: nothing is lost, nothing comes twice, a send is done once."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from a2a.types import SubscribeToTaskRequest

from tests.a2a.returning import Caller, returning
from tests.a2a.talk import Worker, talking
from tests.harness import acts
from tests.harness.client import Client
from tests.harness.patience import Patience
from tests.harness.server import Server

RUNS = 200 if os.environ.get("REDKEY_TEST_LONG") == "1" else 1
KILLS = 3 if RUNS > 1 else 1
ARTIFACTS = 2 * KILLS + 2


class Follower:
    """Follows a task over every break, from where it was."""

    def __init__(self, caller: Caller, task_id: str, after: str) -> None:
        self._caller, self._task_id, self._after = caller, task_id, after
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.snapshots = 0

    def run(self) -> None:
        """Follow the task until it is completed."""
        after = self._after
        while not self._caller.ended:
            try:
                for index, (position, found) in enumerate(self._caller.stream(self._task_id, after)):
                    after = position or after
                    if index == 0:
                        assert "task" in found
                        self.snapshots += 1
                        continue
                    self.got.append((position, found))
                    if found.get("statusUpdate", {}).get("status", {}).get("state") == "TASK_STATE_COMPLETED":
                        return
            except httpx2.TransportError:
                pass
            time.sleep(0.01)


class Work:
    """A worker of one task, which makes an artifact each time it may go on."""

    def __init__(self, caller: Caller, task_id: str, agent_id: str) -> None:
        self._caller, self._task_id, self._agent_id = caller, task_id, agent_id
        self.may_go_on = threading.Semaphore(0)

    def run(self) -> None:
        """Claim the task and complete it."""
        asked = {"agentId": self._agent_id, "leaseSeconds": 3600}
        claim = self._caller.post(f"/tasks/{self._task_id}/claim", asked)["claimId"]
        self._caller.post(f"/claims/{claim}/start", {})
        for number in range(ARTIFACTS):
            # One for each step, so that every kill has something before and behind it.
            self.may_go_on.acquire()
            self._caller.post(f"/claims/{claim}/artifacts", {"name": f"part-{number}", "content": str(number)})
        self._caller.post(f"/claims/{claim}/complete", {"output": {"parts": ARTIFACTS}, "summary": "Done."})


@pytest.mark.parametrize("run", range(RUNS))
def test_nothing_is_lost_or_repeated_over_servers_that_are_killed(run: int, tmp_path: Path) -> None:
    work: Work | None = None
    with (
        returning(tmp_path) as servers,
        closing(Caller(servers.last.url, servers.last.key)) as caller,
        # Leaving the block waits for the two threads, so no test leaves one to the next.
        ThreadPoolExecutor(2) as pool,
    ):
        try:
            with servers.last.client() as owner:
                agent_id = acts.register(owner)["agentId"]
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Work"}]}
            sent = {"message": message, "configuration": {"returnImmediately": True}}
            first = caller.post("/a2a/message:send", sent, "k-1")
            task_id = first["task"]["id"]
            beginning, _ = next(caller.stream(task_id, ""))
            follower, work = Follower(caller, task_id, beginning), Work(caller, task_id, agent_id)
            following, working = pool.submit(follower.run), pool.submit(work.run)

            def arrives(count: int, streams: int) -> None:
                """Wait until the follower has so many updates, by so many streams; a thread that failed says why."""
                patience = Patience(servers.last.process.pid)
                what = f"the update {count}; the server's end: {servers.last.process.poll()}"

                def came() -> bool:
                    return len(follower.got) >= count and follower.snapshots >= streams

                patience.until(lambda: came() or following.done() or working.done(), what)
                for thread in (following, working):
                    if thread.done() and thread.exception() is not None:
                        thread.result()

            for number in range(ARTIFACTS):
                work.may_go_on.release()
                if number % 2 and number // 2 < KILLS:
                    # Every kill breaks a stream: the follower is back since the last one.
                    arrives(number, number // 2 + 1)
                    caller.up.clear()
                    servers.kill()
                    servers.start()
                    caller.up.set()
            patience = Patience(servers.last.process.pid)
            patience.until(lambda: following.done() and working.done(), f"updates so far: {follower.got}")
            working.result()
            following.result()
            whole = list(caller.stream(task_id, beginning))[1:]
            assert follower.got == whole
            assert len({position for position, _ in whole}) == len(whole) == ARTIFACTS + 3
            assert follower.snapshots > KILLS
            # Sent again after the kills, the first message is the same one.
            assert caller.post("/a2a/message:send", sent, "k-1") == first
        finally:
            caller.end()
            if work is not None:
                work.may_go_on.release(ARTIFACTS)


def test_grpc_resumes_by_metadata(server: Server, owner: Client, worker: Worker) -> None:
    extension = "urn:redkey:a2a:ledger:1"

    async def run() -> None:
        async with talking(server, "GRPC", streaming=True) as talk, talking(server, "GRPC") as plain:
            task = await plain.send()
            await asyncio.to_thread(worker.take, task.id)
            await asyncio.to_thread(worker.artifact, name="one", content="1")
            request, more = SubscribeToTaskRequest(id=task.id), {"a2a_extensions": extension}
            whole = aiter(talk.client.subscribe(request, context=talk.context(**more)))
            first = await anext(whole)
            position = first.task.metadata[extension]["position"]
            await asyncio.to_thread(worker.artifact, name="two", content="2")
            update = (await anext(whole)).artifact_update
            assert update.artifact.name == "two"
            await asyncio.to_thread(worker.complete, output="x", summary="Done.")
            rest = [one async for one in whole]
            resumed = talk.client.subscribe(request, context=talk.context(last_event_id=position, **more))
            again = [one async for one in resumed]
            assert again[0].task == first.task
            assert [one.artifact_update for one in again[1:2]] == [update]
            assert again[2:] == rest
            proof = rest[-1].status_update.metadata[extension]
            receipt = await asyncio.to_thread(owner.get, proof["receiptUrl"].removeprefix(server.url))
            assert receipt.status == 200

    asyncio.run(run())
