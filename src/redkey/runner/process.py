"""Run a program under the guard, with limits on time and output; stopping it stops everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import StepFailed

GUARD: Final = Path(__file__).with_name("guard.py")
# How much of standard error is kept: its end, which has the reason.
COMPLAINT_BYTES: Final = 16 * 1024
_CHUNK = 64 * 1024
_PR_SET_DUMPABLE: Final = 4


def hide_process() -> None:
    """Make memory and environment of this process unreadable for other programs of the same user.

    Both contain the runner's key, and an agent's program runs as the runner's user. This works on Linux only, and the
    process then writes no core file. The guard drops the capabilities with which root could still read them.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one run."""

    seconds: float = 3600.0
    output_bytes: int = 16 * 1024 * 1024
    # Seconds between the request to stop and the kill.
    grace_seconds: float = 5.0
    # The same after the runner has died; 0 kills at once.
    orphan_seconds: float = 0.0
    # True for a program that must not be interrupted: it is not asked to stop, and has these times to finish.
    finishes: bool = False


class Guarded(msgspec.Struct, frozen=True):
    """A command that depends on the names of its variables, and a command that cleans up after it."""

    build: Callable[[Iterable[str]], Sequence[str]]
    after: tuple[str, ...] = ()


class Ended(msgspec.Struct, frozen=True):
    """The result of a program that ended by itself."""

    code: int
    output: bytes
    complaint: str


async def run(
    command: Sequence[str] | Guarded,
    *,
    directory: Path,
    environment: Mapping[str, str],
    given: bytes = b"",
    limits: Limits | None = None,
    heard: bytearray | None = None,
    log: Path | None = None,
    held: Sequence[int] = (),
) -> Ended:
    """Run a program to its end; StepFailed if it exceeds its time or its output limit.

    `heard` gets the output as it arrives, and `log` is a directory for `stdout` and `stderr`; both are also filled when
    the program is stopped. The program keeps the file descriptors in `held` open, so locks on them last until it
    ends, also when the runner is killed. A cancellation is raised only after all of the program is gone.
    """
    limits = limits or Limits()
    after: Sequence[str] = ()
    if isinstance(command, Guarded):
        after, command = command.after, command.build(environment)
    output, complaint = bytearray() if heard is None else heard, bytearray()
    theirs, ours = os.pipe()
    try:
        process = await _start(command, after, (theirs, *held), directory, environment, limits)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    try:
        return await _attend(process, given, limits, output, complaint)
    finally:
        await _stop(process, ours)
        if log is not None:
            with contextlib.suppress(OSError):
                (log / "stdout").write_bytes(output)
                (log / "stderr").write_bytes(complaint)


async def _start(
    command: Sequence[str],
    after: Sequence[str],
    passed: tuple[int, ...],
    directory: Path,
    environment: Mapping[str, str],
    limits: Limits,
) -> asyncio.subprocess.Process:
    """Start the guard with the program; the first descriptor that is passed is the guard's control pipe."""
    how = [str(limits.grace_seconds), str(limits.orphan_seconds), str(int(limits.finishes))]
    guarded = [sys.executable, "-I", "-S", str(GUARD), str(passed[0]), *how, "\x1f".join(after), *command]
    try:
        return await asyncio.create_subprocess_exec(
            *guarded,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=directory,
            env=dict(environment),
            pass_fds=passed,
            # Ctrl-C in the terminal must reach only the runner.
            start_new_session=True,
        )
    except (OSError, ValueError) as cause:
        raise StepFailed(f"the program cannot be started: {cause}", code="spawn_failed") from cause


async def _attend(
    process: asyncio.subprocess.Process, given: bytes, limits: Limits, output: bytearray, complaint: bytearray
) -> Ended:
    try:
        async with asyncio.timeout(limits.seconds):
            async with asyncio.TaskGroup() as group:
                group.create_task(_give(process, given))
                group.create_task(_collect(process.stdout, output, limits.output_bytes))
                group.create_task(_collect_end(process.stderr, complaint))
            code = await process.wait()
    except TimeoutError as cause:
        text = f"the program was stopped after {limits.seconds:g} seconds"
        raise StepFailed(text, code="timed_out") from cause
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return Ended(code, bytes(output), complaint.decode("utf-8", "replace"))


async def _give(process: asyncio.subprocess.Process, given: bytes) -> None:
    """Write the input; a program may end without reading it."""
    if process.stdin is None:
        raise AssertionError("a program without a standard input")
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _collect(stream: asyncio.StreamReader | None, into: bytearray, most: int) -> None:
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        into += chunk
        if len(into) > most:
            raise StepFailed(f"the program wrote more than {most:,} bytes", code="output_too_large")


async def _collect_end(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        into += chunk
        if len(into) > COMPLAINT_BYTES:
            del into[:-COMPLAINT_BYTES]


async def _stop(process: asyncio.subprocess.Process, control: int) -> None:
    """Ask the guard to stop everything and wait for its end, even while this call is cancelled."""
    if process.returncode is None:
        with contextlib.suppress(OSError):
            os.write(control, b"t")
    waiting = asyncio.ensure_future(_drained(process))
    cancelled = False
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            cancelled = True
    os.close(control)
    if cancelled:
        raise asyncio.CancelledError


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Wait for the end and discard further output, because a full pipe would block the program."""
    sink = bytearray()
    await asyncio.gather(
        *(_collect_end(stream, sink) for stream in (process.stdout, process.stderr)), return_exceptions=True
    )
    await process.wait()
