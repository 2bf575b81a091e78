"""A fleet: a process for each agent, started again with growing pauses when it crashes, stopped together.

Each process is `redkey run --fleet FILE --agent NAME` and tells what happens as lines of JSON. It stops when its
standard input ends, so a fleet that dies leaves nobody behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from redkey.runner.run import Told

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
# Who ran so long without a crash begins anew with the shortest pause.
_STEADY_SECONDS: Final = 60.0
_LINE_BYTES: Final = 1024 * 1024

# What a process ends with whose settings or card cannot be used (EX_CONFIG of sysexits.h): starting it again is no use.
BROKEN_EXIT: Final = 78
# So many ends without having been ready, one after the other, are no accident either.
_HOPELESS: Final = 5

State = Literal["starting", "idle", "working", "paused", "restarting", "broken", "stopped"]


class Standing(msgspec.Struct):
    """How one agent of the fleet does."""

    name: str
    state: State = "starting"
    task_id: str = ""
    title: str = ""
    verified: int = 0
    failed: int = 0
    blocked: int = 0
    crashes: int = 0
    cost_usd: float = 0.0
    last: str = ""
    # Whether the process that runs now, or ran last, got as far as claiming.
    was_ready: bool = False


class Fleet:
    """Runs the agents of a fleet; `command` gives the command line of one."""

    def __init__(
        self,
        names: Sequence[str],
        command: Callable[[str], Sequence[str]],
        *,
        stop_seconds: float = 30.0,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.standings = {name: Standing(name) for name in names}
        self._command, self._stop_seconds, self._first = command, stop_seconds, first_pause_seconds
        self._changed = changed
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let every agent finish what it has in hand, then end."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until a stop."""
        async with asyncio.TaskGroup() as group:
            for standing in self.standings.values():
                group.create_task(self._keep(standing))

    async def _keep(self, standing: Standing) -> None:
        """Keep one agent running until the fleet stops, or until it is clear that it cannot be started."""
        pause, hopeless = self._first, 0
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            begun = loop.time()
            code = await self._once(standing)
            if self._stopping.is_set():
                # What an agent that stopped in good order complained of before is no reason of anything.
                standing.last = standing.last if code else ""
                break
            hopeless = 0 if standing.was_ready else hopeless + 1
            if code == BROKEN_EXIT or hopeless == _HOPELESS:
                standing.last = standing.last or f"ended with exit code {code}"
                self._show(standing, "broken")
                return
            standing.crashes += 1
            standing.last = f"ended with exit code {code}" + (f": {standing.last}" if standing.last else "")
            self._show(standing, "restarting")
            pause = self._first if loop.time() - begun > _STEADY_SECONDS else pause
            with contextlib.suppress(TimeoutError):
                # Not together with the others that the same cause brought down.
                await asyncio.wait_for(self._stopping.wait(), pause * (0.75 + random.random() / 2))  # noqa: S311
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        self._show(standing, "stopped")

    async def _once(self, standing: Standing) -> int:
        standing.was_ready = False
        self._show(standing, "starting")
        process = await asyncio.create_subprocess_exec(
            *self._command(standing.name),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            start_new_session=True,
        )
        stopping = asyncio.create_task(self._stopping.wait())
        hearing = asyncio.create_task(self._hear(standing, process))
        try:
            await asyncio.wait({stopping, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done():
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(hearing), self._stop_seconds)
        finally:
            stopping.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await hearing
        return await process.wait()

    async def _hear(self, standing: Standing, process: asyncio.subprocess.Process) -> None:
        """Follow what the process tells until it has ended."""
        await asyncio.gather(self._follow(standing, process.stdout), self._complaints(standing, process.stderr))
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()

    async def _follow(self, standing: Standing, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (line := await _line(stream)) is not None:
            with contextlib.suppress(msgspec.DecodeError):
                self._take(standing, msgspec.json.decode(line, type=Told))

    async def _complaints(self, standing: Standing, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (line := await _line(stream)) is not None:
            standing.last = line.decode("utf-8", "replace").strip()[:200] or standing.last

    def _take(self, standing: Standing, told: Told) -> None:
        standing.last = told.reason[:200]
        standing.was_ready = True
        if told.event == "paused":
            self._show(standing, "paused")
            return
        if told.event == "working":
            standing.task_id, standing.title = told.task_id, told.title
            self._show(standing, "working")
            return
        standing.task_id = standing.title = ""
        standing.cost_usd += told.cost_usd
        if told.event in ("verified", "failed", "blocked"):
            setattr(standing, told.event, getattr(standing, told.event) + 1)
        self._show(standing, "idle")

    def _show(self, standing: Standing, state: State) -> None:
        standing.state = state
        self._changed()


async def _line(stream: asyncio.StreamReader) -> bytes | None:
    """The next line; None at the end. A line that is too long is passed over."""
    while True:
        try:
            return await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as ended:
            return ended.partial or None
        except asyncio.LimitOverrunError as long:
            await stream.readexactly(long.consumed)


def own_command(file: str, options: Sequence[str]) -> Callable[[str], Sequence[str]]:
    """How a fleet starts one of its agents."""
    return lambda name: [sys.executable, "-m", "redkey", "run", "--fleet", file, "--agent", name, *options]
