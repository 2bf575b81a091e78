"""Acts: work beside commands goes through the coordinator, one unit each, and only a few modules open units at all."""

from __future__ import annotations

import ast
import asyncio
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import redkey
from redkey.app import App
from redkey.commands.decision import Refused
from redkey.config import Config
from redkey.errors import RedKeyError, StoreFull, StorePoisoned, WriterBusy
from redkey.ledger import content
from redkey.ledger.ports import Unit
from redkey.services.failures import Unavailable
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import CountedIds, HandClock
from tests.harness.office import Office, turns, two_offices
from tests.services.flaky import FlakyStore

# The topic of the first office on a store.
TOPIC = "1.0.1001"
# The modules that open units, and why.
OPENERS = {
    "services/commit_path.py": "commands",
    "services/acts.py": "acts, and what works on a data directory by itself",
    "services/simulation.py": "a store of its own",
    "services/backup.py": "offline: restore",
    "services/ledger_copy.py": "offline: ledger copy",
    "services/load.py": "offline: load",
    "services/ordered/hosting.py": "a store of its own, in memory",
    "services/ordered/rebuild.py": "offline: ledger import",
    "services/reconcile.py": "offline: reads while writers wait",
    "services/recovery.py": "offline: key recover",
}
# The modules that use `directly`: the server before it has a coordinator, and offline commands.
DIRECT = {
    "app.py",
    "services/acts.py",
    "services/log_facts.py",
    "services/signing.py",
    "services/workspaces.py",
    "cli/signer.py",
}


@cache
def sources() -> dict[str, ast.Module]:
    root = Path(redkey.__file__).parent
    return {path.relative_to(root).as_posix(): ast.parse(path.read_text()) for path in root.rglob("*.py")}


def opens_a_unit(tree: ast.Module) -> bool:
    """True when a module names `store.write` or `write_store` of anything."""

    def owner(node: ast.Attribute) -> str:
        return getattr(node.value, "attr", "") or getattr(node.value, "id", "")

    return any(
        node.attr == "write_store" or (node.attr == "write" and owner(node).endswith("store"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    )


def test_nothing_else_opens_units() -> None:
    assert {name for name, tree in sources().items() if opens_a_unit(tree)} == OPENERS.keys()


def test_nothing_else_goes_around_the_coordinator() -> None:
    def is_direct(tree: ast.Module) -> bool:
        names = ("directly", "begin_directly")
        return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(tree)) or any(
            isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names for node in ast.walk(tree)
        )

    assert {name for name, tree in sources().items() if is_direct(tree)} == DIRECT


def note(name: str, value: str = "yes") -> Callable[[Unit], str]:
    """Work that leaves a visible row."""

    def work(unit: Unit) -> str:
        unit.put_fact(TOPIC, name, value)
        return value

    return work


def test_an_act_is_durable_when_it_is_answered() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()
        assert await office.coordinator.act(TOPIC, note("done")) == "yes"
        assert office.store.setting("done") == "yes"

    asyncio.run(run())


def test_an_act_that_is_refused_leaves_nothing() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()

        def work(unit: Unit) -> None:
            unit.put_fact(TOPIC, "done", "yes")
            raise Refused(409, "not_now", "Not now.")

        with pytest.raises(Refused):
            await office.coordinator.act(TOPIC, work)
        assert office.store.setting("done") is None
        # The coordinator goes on.
        assert await office.task()

    asyncio.run(run())


def test_an_act_that_breaks_is_a_fault_of_ours_and_its_alone() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()
        with pytest.raises(RedKeyError) as failed:
            await office.coordinator.act(TOPIC, lambda unit: 1 // 0)
        assert failed.value.code == "internal_error"
        assert isinstance(failed.value.__cause__, ZeroDivisionError)
        assert await office.coordinator.act(TOPIC, note("done")) == "yes"

    asyncio.run(run())


def test_a_store_that_fails_is_told_as_to_commands() -> None:
    async def run() -> None:
        store = FlakyStore()
        office = await Office(store).begin()
        store.fail_next = [StoreFull("no room"), OSError(5, "broken")]
        with pytest.raises(StoreFull):
            await office.coordinator.act(TOPIC, note("done"))
        with pytest.raises(RedKeyError):
            await office.coordinator.act(TOPIC, note("done"))
        assert store.setting("done") is None

    asyncio.run(run())


def test_a_poisoned_store_stops_the_process() -> None:
    async def run() -> None:
        store = FlakyStore()
        office = await Office(store).begin()
        store.fail_next = [StorePoisoned("fsync failed")]
        with pytest.raises(StorePoisoned):
            await office.coordinator.act(TOPIC, note("done"))
        assert [type(one) for one in office.fatal] == [StorePoisoned]
        with pytest.raises(StorePoisoned):
            await office.do(office.new_task())

    asyncio.run(run())


def test_commands_share_a_unit_and_each_act_has_its_own() -> None:
    async def run() -> None:
        store = FlakyStore()
        office = await Office(store).begin()
        units = len(store.units)
        acts = [office.coordinator.act(TOPIC, note(f"n{number}")) for number in range(3)]
        await asyncio.gather(*acts, *(office.do(office.new_task()) for _ in range(3)))
        assert [bool(records) for records in store.units[units:]] == [True, False, False, False]

    asyncio.run(run())


def test_a_command_does_not_wait_for_all_the_acts_before_it() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()
        acts = [asyncio.ensure_future(office.coordinator.act(TOPIC, note(f"n{number}"))) for number in range(9)]
        await acts[0]
        await office.do(office.new_task())
        assert not acts[-1].done()
        await asyncio.gather(*acts)

    asyncio.run(run())


def test_an_act_whose_caller_is_gone_is_not_done() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()
        asked = asyncio.ensure_future(office.coordinator.act(TOPIC, note("done")))
        await asyncio.sleep(0)
        asked.cancel()
        await turns()
        assert office.store.setting("done") is None

    asyncio.run(run())


def test_an_act_waits_for_another_process_and_does_not_hold_up_the_loop() -> None:
    async def run() -> None:
        one, other = two_offices()
        await one.begin()
        other.store.hold()
        asked = asyncio.ensure_future(one.coordinator.act(TOPIC, note("done")))
        await turns()
        assert not asked.done()
        other.store.release()
        assert await asyncio.wait_for(asked, 60) == "yes"

    asyncio.run(run())


def test_a_lock_that_cannot_be_had_fails_acts_too() -> None:
    class Stuck(MemoryStore):
        """Another process never releases the lock."""

        stuck = False

        def _transaction(self, wait: bool) -> Any:
            if self.stuck:
                raise WriterBusy
            return super()._transaction(wait)

        def hold(self) -> None:
            raise WriterBusy("stuck")

    async def run() -> None:
        store = Stuck(HandClock(), MemoryDisk())
        office = await Office(store, CountedIds()).begin()
        store.stuck = True
        asked = [asyncio.ensure_future(office.coordinator.act(TOPIC, note(f"n{number}"))) for number in range(2)]
        for one in asked:
            with pytest.raises(WriterBusy):
                await asyncio.wait_for(one, 60)

    asyncio.run(run())


def test_a_coordinator_that_stopped_takes_the_last_acts_of_the_server_and_no_command() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()
        await office.coordinator.stop()
        with pytest.raises(Unavailable):
            await office.do(office.new_task())
        assert await office.coordinator.act(TOPIC, note("last")) == "yes"

    asyncio.run(run())


def test_a_thread_acts_by_the_loop_and_gets_what_the_work_raises() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()
        perform = office.coordinator.act_from_thread(asyncio.get_running_loop())
        assert await asyncio.to_thread(perform, TOPIC, note("done")) == "yes"

        def refused(unit: Unit) -> None:
            raise Refused(409, "not_now", "Not now.")

        with pytest.raises(Refused):
            await asyncio.to_thread(perform, TOPIC, refused)

    asyncio.run(run())


def test_what_an_act_writes_to_a_topic_is_seen_by_the_next_command() -> None:
    async def run() -> None:
        office = await Office(FlakyStore()).begin()
        body = content.body(b"body")
        await office.coordinator.act(TOPIC, lambda unit: unit.put_content(office.topic, [body]))
        assert office.store.content(office.topic, body.sha256) == body
        assert await office.task()

    asyncio.run(run())


def test_a_server_stops_while_a_thread_waits_for_an_act(tmp_path: Path) -> None:
    """A receipt is made in a thread that waits for the loop: the loop must not wait for the thread."""

    async def run() -> None:
        app = App(Config(data=tmp_path / "data", public_url="http://127.0.0.1"), lambda cause: None)
        await app.start()
        topic = app.store.topics()[0]
        begun, stopped = threading.Event(), threading.Event()

        def act() -> str:
            begun.set()
            assert stopped.wait(30)
            # Given up after a while, so that a loop that waits for this thread fails and does not hang.
            made = asyncio.run_coroutine_threadsafe(app.coordinator.act(TOPIC, note("late", topic)), loop)
            return made.result(5)

        loop = asyncio.get_running_loop()
        late = loop.run_in_executor(app.services.threads, act)
        await loop.run_in_executor(None, begun.wait)
        await app.coordinator.stop()
        stopped.set()
        await app.finish_stop()
        assert await late == topic

    asyncio.run(run())
