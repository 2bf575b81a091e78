"""Workers as processes: stopped, told to stop, blocked, and racing each other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from redkey.client import Claimed, RedKey
from tests.client.conftest import Place
from tests.client.worker.crew import PATIENCE_SECONDS, task, until


class Process:
    """A worker in a process; what it says can be waited for."""

    def __init__(self, place: Place, what: str, agent: str) -> None:
        environment = {**os.environ, "REDKEY_URL": place.url, "REDKEY_API_KEY": place.key}
        command = [sys.executable, "-m", "tests.client.worker.script", what, agent]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.said: list[str] = []

    def hear(self, pattern: str) -> str:
        """Wait until it says this."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            found = re.search(pattern, line)
            if found is not None:
                return found.group(found.re.groups)
        raise AssertionError(f"it never said {pattern!r}: {self.said}")

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def finish(self) -> int:
        """Hear it to its end; its exit code."""
        assert self.process.stdout is not None
        self.said += [line.rstrip() for line in self.process.stdout]
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


Start = Callable[[str, str], Process]


def assert_each_won_once(rk: RedKey, racers: list[Process], tasks: list[str]) -> None:
    """Wait for every task, stop the racers, and count who said that it won what."""
    for made in tasks:
        until(rk, "task.complete", made)
    for racer in racers:
        racer.process.send_signal(signal.SIGTERM)
        assert racer.finish() == 0, racer.said
    won = Counter(word for racer in racers for line in racer.said for word in re.findall(r"won (task_\S+)", line))
    assert won == dict.fromkeys(tasks, 1)


@pytest.fixture
def start_worker(place: Place) -> Iterator[Start]:
    started: list[Process] = []

    def begin(what: str, agent: str) -> Process:
        started.append(Process(place, what, agent))
        return started[-1]

    yield begin
    for process in started:
        process.end()


def test_a_worker_that_was_stopped_past_its_lease_learns_that_it_lost_the_task(rk: RedKey, start_worker: Start) -> None:
    made = task(rk)
    rival = rk.agents.register(card={"name": "Rival", "version": "1"}).agent_id
    worker = start_worker("hold", "sleeper")
    claim_id = worker.hear(r"begun (\S+)")
    worker.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    # The server gives the task to whoever waits for it, once the lease has expired.
    taken = rk.queues.claim_next("podcast", rival, lease_seconds=600, wait=30)
    assert isinstance(taken, Claimed)
    assert taken.task_id == made
    before = rk.tasks.get(made)
    worker.tell("go on")
    worker.process.send_signal(signal.SIGCONT)
    # In the first moment, whatever its threads have heard since: its own clock knows.
    assert worker.hear(r"^(lost|held)$") == "lost"
    assert worker.finish() == 0
    said = "\n".join(worker.said)
    assert "sleeper lost A task after " in said
    assert f"what was done under {claim_id} changes nothing" in said
    assert "lost=1" in said
    assert "completed=0" in said
    # Its late completion changed nothing.
    assert rk.tasks.get(made) == before
    assert [event.type for event in rk.claims.events(claim_id)][-1] == "task.lease_expired"
    assert rk.claims.complete(taken.claim_id, output="by rival").status == "completed"
    assert rk.tasks.get(made).output == "by rival"


def test_a_worker_whose_handler_blocks_the_event_loop_keeps_its_claim(rk: RedKey, start_worker: Start) -> None:
    made = task(rk)
    worker = start_worker("block", "blocker")
    claim_id = worker.hear(r"begun (\S+)")
    assert worker.finish() == 0, worker.said
    assert rk.tasks.get(made).output == "held all along"
    types = Counter(event.type for event in rk.claims.events(claim_id))
    assert types["task.lease_expired"] == 0
    # Seven and a half seconds of a lease of five: heartbeats came through.
    assert types["task.lease_extended"] >= 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_makes_a_worker_give_back_what_it_holds(
    rk: RedKey, start_worker: Start, number: signal.Signals
) -> None:
    made = task(rk)
    worker = start_worker("wait", "holder")
    worker.hear(r"begun (\S+)")
    worker.process.send_signal(number)
    assert worker.finish() == 0, worker.said
    assert "released=1" in worker.said[-1]
    assert rk.tasks.get(made).state == "available"


def test_a_second_signal_does_not_wait_for_the_handler(rk: RedKey, start_worker: Start) -> None:
    made = task(rk)
    worker = start_worker("stubborn", "stubborn")
    worker.hear(r"begun (\S+)")
    worker.process.send_signal(signal.SIGTERM)
    worker.hear(r"(finishing 1 task)")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.finish() == 0, worker.said
    assert "released=1" in worker.said[-1]
    assert rk.tasks.get(made).state == "available"


def test_racers_win_each_task_once_and_a_missed_task_is_not_claimed_again(rk: RedKey, start_worker: Start) -> None:
    waiting = task(rk, title="There before anybody came")
    names = [f"racer-{number}" for number in range(3)]
    racers = [start_worker("race", name) for name in names]
    for racer in racers:
        racer.hear(r"waiting on podcast")
    tasks = [waiting, *(task(rk, required_roles=["racer"] if number else []) for number in range(12))]
    rk.roles.create("somebody else", id="other")
    other = task(rk, required_roles=["other"])
    assert_each_won_once(rk, racers, tasks)
    agents = {agent.slug: agent.agent_id for agent in rk.agents.list()}
    for name in names:
        tried = Counter(one.task_id for one in rk.agents.claim_history(agents[name]))
        # One attempt for each time that a task became available, won or missed; none for what the role rules out.
        assert set(tried.values()) <= {1}
        assert other not in tried


def test_two_processes_of_one_agent_do_not_do_one_task_twice(rk: RedKey, start_worker: Start) -> None:
    """An agent that claims what it holds is told of the same claim: only one of its processes may begin."""
    racers = [start_worker("race", "same") for _ in range(2)]
    for racer in racers:
        racer.hear(r"waiting on podcast")
    tasks = [task(rk) for _ in range(8)]
    assert_each_won_once(rk, racers, tasks)
