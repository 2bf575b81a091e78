"""Workers say what they do: a sentence for people, fields for machines, and nothing where it is not wanted."""

from __future__ import annotations

import json
import logging
import signal

import pytest

from redkey.client import CallMisused, Context, Fail, RedKey
from redkey.client.worker.log import WorkerLog, printable, shown
from tests.client.conftest import Place
from tests.client.worker.crew import task, until
from tests.client.worker.test_processes import Start, start_worker

__all__ = ["start_worker"]
LEASE = 5


def run_two(rk: RedKey, log: str) -> None:
    """A worker that finishes one task and fails the next."""
    left = 2

    @rk.worker(queue="jobs", roles=["analyst"], agent="ana", lease_seconds=LEASE)
    def handle(ctx: Context) -> None:
        nonlocal left
        left -= 1
        ctx.log.info("100%% sure about %s", ctx.input)
        if not left:
            rk.stop()
            raise Fail("no\x1b[31m figures")

    rk.run(log=log)  # type: ignore[arg-type]


def test_a_worker_says_in_words_what_it_does(rk: RedKey, capfd: pytest.CaptureFixture[str]) -> None:
    for title in ("Add up May", "Add up June"):
        task(rk, "jobs", title=title, input={"month": 5})
    run_two(rk, "text")
    said = [line.partition(" ")[2] for line in capfd.readouterr().err.splitlines()]
    assert said[0].startswith("registered agent ana")
    assert "ana waiting on jobs (analyst)" in said
    assert "ana claimed Add up May" in said
    assert "ana Add up May: 100% sure about {'month': 5}" in said
    assert any(line.startswith("ana done Add up May in ") and line.endswith(" s") for line in said)
    [failed] = (line for line in said if line.startswith("ana failed Add up June after "))
    assert failed.endswith(" s: no [31m figures")


def test_a_worker_says_the_same_in_json(rk: RedKey, capfd: pytest.CaptureFixture[str]) -> None:
    made = [task(rk, "jobs", title=title) for title in ("May", "June")]
    run_two(rk, "json")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    events = [(line["event"], line["task_id"]) for line in lines if "task_id" in line]
    assert events == [
        (what, one) for one, end in zip(made, ("done", "failed"), strict=True) for what in ("claimed", "log", end)
    ]
    assert all(line["agent"] == "ana" for line in lines if "task_id" in line)
    assert lines[-1]["seconds"] >= 0


def test_a_quiet_worker_and_one_inside_another_program_write_nothing(
    rk: RedKey, capfd: pytest.CaptureFixture[str]
) -> None:
    for style in ("quiet", "auto"):
        rk._workers.clear()
        task(rk, "jobs")
        task(rk, "jobs")
        run_two(rk, style)
    assert capfd.readouterr().err == ""


def test_an_unknown_style_is_refused_with_where_it_comes_from(rk: RedKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDKEY_WORKER_LOG", "loud")
    with pytest.raises(CallMisused, match="REDKEY_WORKER_LOG=loud is not a log style: use auto, text, json or quiet"):
        run_two(rk, "auto")
    with pytest.raises(CallMisused, match="log='loud'"):
        run_two(rk, "loud")


def test_logging_is_as_before_after_a_run() -> None:
    log = logging.getLogger("redkey.client.worker")
    before = log.level, log.propagate, list(log.handlers)
    with shown("text"):
        assert log.handlers != before[2]
    assert (log.level, log.propagate, log.handlers) == before


def test_a_missed_race_names_the_winner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    WorkerLog("ana").missed("task_1", "bob")
    assert caplog.messages == ["ana missed task_1: bob won it"]


def test_titles_cannot_write_to_the_terminal() -> None:
    assert printable("a\x1b]0;b\x07\nc", 60) == "a ]0;b  c"
    assert printable("x" * 99, 10) == "x" * 9 + "…"


def test_ctrl_c_says_what_it_does_and_the_second_gives_the_task_back(
    rk: RedKey, place: Place, start_worker: Start
) -> None:
    made = task(rk)
    worker = start_worker("stubborn", "ana")
    worker.hear("begun")
    worker.process.send_signal(signal.SIGINT)
    worker.hear("finishing 1 task, Ctrl-C again to give it back")
    worker.process.send_signal(signal.SIGINT)
    worker.hear("giving back 1 task")
    until(rk, "task.released", made)
    assert worker.finish() == 0
    assert rk.tasks.get(made).state == "available"
