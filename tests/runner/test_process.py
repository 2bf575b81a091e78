"""Programs under the guard: their limits, and that nothing of them is left, however the runner ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from redkey.errors import StepFailed
from redkey.runner.process import Ended, Limits, run
from tests.runner.processes import gone, is_alive, pids

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def _run(tmp_path: Path, *command: str, given: bytes = b"", **limits: float) -> Ended:
    asked = run(command, directory=tmp_path, environment=ENVIRONMENT, given=given, limits=Limits(**limits))
    return asyncio.run(asked)


def test_a_program_gets_its_input_and_gives_its_output_code_and_complaint(tmp_path: Path) -> None:
    ended = _run(tmp_path, "sh", "-c", "cat; pwd; echo bad >&2; exit 3", given=b"in ")
    assert ended == Ended(3, b"in " + str(tmp_path).encode() + b"\n", "bad\n")


def test_a_program_sees_no_environment_but_what_it_was_given(tmp_path: Path) -> None:
    os.environ["REDKEY_TEST_SECRET"] = "x"
    try:
        out = _run(tmp_path, "env").output.decode()
    finally:
        del os.environ["REDKEY_TEST_SECRET"]
    assert {line.partition("=")[0] for line in out.splitlines()} <= {"PATH", "PWD", "SHLVL", "_", "LC_CTYPE"}


def test_a_program_has_no_descriptor_beyond_its_three(tmp_path: Path) -> None:
    code = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    assert _run(tmp_path, sys.executable, "-c", code).output in (b"['0', '1', '2', '3']\n", b"['0', '1', '2']\n")


def test_a_signal_ends_as_shells_tell_it(tmp_path: Path) -> None:
    assert _run(tmp_path, "sh", "-c", "kill -SEGV $$").code == 128 + signal.SIGSEGV


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/", 126)])
def test_a_program_that_cannot_be_run_is_told_by_the_codes_of_shells(program: str, code: int, tmp_path: Path) -> None:
    ended = _run(tmp_path, program)
    assert ended.code == code
    assert program in ended.complaint


def test_a_missing_directory_is_a_failed_start(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as failed:
        _run(tmp_path / "nowhere", "true")
    assert failed.value.code == "spawn_failed"


def test_input_that_nobody_reads_hurts_nobody(tmp_path: Path) -> None:
    assert _run(tmp_path, "true", given=b"x" * 10_000_000).code == 0


def test_a_hundred_megabytes_of_output_end_the_program_and_not_the_runner(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as failed:
        _run(tmp_path, "sh", "-c", f"echo $$ > {tmp_path}/pid; head -c 100000000 /dev/zero", output_bytes=1_000_000)
    assert failed.value.code == "output_too_large"
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_hundred_megabytes_of_complaints_leave_their_end(tmp_path: Path) -> None:
    ended = _run(tmp_path, "sh", "-c", "head -c 100000000 /dev/zero >&2; echo last >&2")
    assert ended.complaint.endswith("last\n")
    assert len(ended.complaint) <= 16 * 1024


def test_time_is_limited(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as failed:
        _run(tmp_path, "sleep", "600", seconds=0.2)
    assert failed.value.code == "timed_out"


def test_a_program_that_ignores_the_request_to_stop_is_killed_with_its_daemons(tmp_path: Path) -> None:
    """The grandchild has a session of its own and ignores SIGTERM too: only an adopting guard finds it."""
    script = tmp_path / "stubborn.sh"
    script.write_text("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 600' & echo $$ >> pids; wait")

    async def scene() -> list[int]:
        limits = Limits(grace_seconds=0.2)
        running = asyncio.create_task(
            run(["sh", str(script)], directory=tmp_path, environment=ENVIRONMENT, limits=limits)
        )
        found = await asyncio.to_thread(pids, tmp_path / "pids", 2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return found

    for pid in asyncio.run(scene()):
        assert gone(pid)


def test_what_a_program_leaves_behind_goes_when_it_ends(tmp_path: Path) -> None:
    ended = _run(tmp_path, "sh", "-c", "setsid sleep 600 & echo $! > pids; echo done")
    assert ended.output == b"done\n"
    assert gone(pids(tmp_path / "pids", 1)[0])


def test_cancelling_stops_the_program_before_the_cancellation_is_felt(tmp_path: Path) -> None:
    async def scene() -> None:
        running = asyncio.create_task(
            run(["sh", "-c", "echo $$ > pids; exec sleep 600"], directory=tmp_path, environment=ENVIRONMENT)
        )
        (pid,) = await asyncio.to_thread(pids, tmp_path / "pids", 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not is_alive(pid)

    asyncio.run(scene())


def test_killing_the_runner_leaves_no_orphan(tmp_path: Path) -> None:
    """kill -9: nothing in the runner can clean up, and still the program, its child and the guard go."""
    script = tmp_path / "stubborn.sh"
    script.write_text(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 600' & echo $$ $PPID >> pids; wait"
    )
    code = textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from redkey.runner.process import run
        asyncio.run(run(["sh", {str(script)!r}], directory=Path({str(tmp_path)!r}), environment={ENVIRONMENT!r}))
    """)
    runner = subprocess.Popen([sys.executable, "-c", code])
    try:
        found = pids(tmp_path / "pids", 3)
    finally:
        runner.kill()
        runner.wait()
    for pid in found:
        assert gone(pid)
