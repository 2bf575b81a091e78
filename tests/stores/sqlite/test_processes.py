"""Several processes on one data directory: safe, in turn, without starvation; a forked child gets an error."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import WriterBusy
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.lock import TURNSTILE_NAME, _State
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, new_topic

HAMMER = Path(__file__).with_name("hammer.py")
LONG = os.environ.get("REDKEY_TEST_LONG") == "1"


def start(directory: Path, topic: str, units: int, batch: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(HAMMER), str(directory), topic, str(units), str(batch), name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_together(processes: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [json.loads(output) for output in outputs]


@pytest.mark.parametrize(("count", "batch"), [(2, 1), (2, 64), (4, 3)])
def test_processes_that_hammer_one_file_lose_nothing_and_take_turns(tmp_path: Path, count: int, batch: int) -> None:
    units = 1000 if LONG else 100
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        results = run_together([start(tmp_path, topic, units, batch, f"p{n}") for n in range(count)])
        records = check_topic(store, topic)
        assert len(records) == count * units * batch
        for name, result in zip((f"p{n}" for n in range(count)), results, strict=True):
            own = [record.sequence for record in records if record.wire == b'{"by":"%s"}' % name.encode()]
            assert own == result["own"], "what a process was told is its own must be what is there"
            assert [record.sequence for record in store.events(topic, name, limit=10**6)] == own
    order = turns_of([result["own"][::batch] for result in results])
    # A busy machine may stop one of them for a while when it does not even ask, so single waits prove nothing; and it
    # may let one begin when another has almost ended, and then there is too little to judge by.
    if len(order) >= units:
        assert min(order.count(n) for n in range(count)) * count * 4 >= len(order), "one of them starved"
        assert sum(one != other for one, other in pairwise(order)) * 2 >= len(order), "they do not take turns"


def turns_of(units: list[list[int]]) -> list[int]:
    """Which process wrote each unit, while all were at work: after all had begun, and before the first had ended."""
    first, last = max(own[0] for own in units), min(own[-1] for own in units)
    return [n for _, n in sorted((turn, n) for n, own in enumerate(units) for turn in own if first <= turn <= last)]


def test_whoever_has_just_written_cannot_pass_one_who_waits(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as busy, SqliteStore(tmp_path) as patient, ThreadPoolExecutor(1) as pool:
        topic = new_topic(busy)
        for _ in range(20):
            with busy.write(topic):
                waiting = pool.submit(patient.hold)
                await_turnstile(tmp_path, patient)
            with pytest.raises(WriterBusy), busy.write(topic, wait=False):
                pass
            waiting.result(30)
            append(patient, topic, 1)
            append(busy, topic, 1)
        check_topic(busy, topic)


def await_turnstile(directory: Path, patient: SqliteStore) -> None:
    """Return when the thread of `patient` holds the turnstile and waits for the lock."""
    # Before it waits, a caller tries both locks once and gives the turnstile back; that must not be taken for waiting.
    while patient._lock._state is not _State.ENTERING:
        os.sched_yield()
    with (directory / TURNSTILE_NAME).open("rb") as turnstile:
        while True:
            try:
                fcntl.flock(turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(turnstile, fcntl.LOCK_UN)
            os.sched_yield()


def test_a_writer_that_is_killed_gives_the_lock_back_and_loses_only_its_unit(tmp_path: Path) -> None:
    script = (
        "import sys, time; from redkey.stores.sqlite import SqliteStore; from redkey.ledger.ports import Entry\n"
        "store = SqliteStore(sys.argv[1])\n"
        "with store.write(sys.argv[2]) as unit:\n"
        "    unit.append(sys.argv[2], [Entry(b'1', 'wire_1')] * 500, 3)\n"
        "    unit.read(sys.argv[2])\n"
        "    print('inside', flush=True)\n"
        "    time.sleep(600)\n"
    )
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 3)
        command = [sys.executable, "-c", script, str(tmp_path), topic]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        append(store, topic, 2)
        assert len(check_topic(store, topic)) == 5


# The child lives on until its standard input ends, so that it cannot outlive the test.
FORK = """
import os, sys
from redkey.errors import StoreMisused
from redkey.stores.sqlite import SqliteStore

store = SqliteStore(sys.argv[1])
topic = store.create_topic()
store.hold()
if os.fork():
    os.kill(os.getpid(), 9)  # The parent dies with the lock held, and the child still there.
codes = []
for call in (lambda: store.head(topic), lambda: store.write(topic).__enter__(), store.look, store.hold):
    try:
        call()
    except StoreMisused as refused:
        codes.append(refused.code)
store.close()
print(*codes, flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_a_forked_child_is_refused_and_does_not_keep_its_dead_parents_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "wrong_process wrong_process wrong_process wrong_process\n"
    assert process.wait(30) == -signal.SIGKILL
    with SqliteStore(tmp_path) as store, store.write("1.0.1001", wait=False) as unit:
        assert unit.topics() == ["1.0.1001"]
    process.communicate(timeout=30)


def test_a_follower_hears_of_another_process(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        batches = store.follow(topic)
        with ThreadPoolExecutor(1) as pool:
            for name in ("one", "two"):
                waiting = pool.submit(next, batches)
                (result,) = run_together([start(tmp_path, topic, 1, 2, name)])
                assert [record.sequence for record in waiting.result(30)] == result["own"]
        batches.close()
