"""A fleet: one process per agent; crashed ones restart after growing pauses, and all stop together.

Each process is `redkey run --fleet FILE --agent NAME` and reports events as lines of JSON. It stops when its standard
input ends, so no process outlives the fleet.
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
# After this many seconds without a crash, the pause starts at its shortest again.
_STEADY_SECONDS: Final = 60.0
_LINE_BYTES: Final = 1024 * 1024

# Exit code of a process with unusable settings or card (EX_CONFIG of sysexits.h); a restart would not help.
BROKEN_EXIT: Final = 78
# An agent that ends this often in a row before it is ready is not restarted either.
_HOPELESS: Final = 5

State = Literal["starting", "idle", "working", "paused", "restarting", "broken", "stopped"]


class AgentState(msgspec.Struct):
    """The state of one agent of the fleet."""

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
    # Whether the current or last process became ready to claim.
    was_ready: bool = False


class Fleet:
    """Runs the agents of a fleet; `command` returns the command line of one agent."""

    def __init__(
        self,
        names: Sequence[str],
        command: Callable[[str], Sequence[str]],
        *,
        stop_seconds: float = 30.0,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.agents = {name: AgentState(name) for name in names}
        self._command, self._stop_seconds, self._first = command, stop_seconds, first_pause_seconds
        self._changed = changed
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Stop: every agent may finish its current task."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop` is called."""
        async with asyncio.TaskGroup() as group:
            for agent in self.agents.values():
                group.create_task(self._keep(agent))

    async def _keep(self, agent: AgentState) -> None:
        """Keep one agent running until the fleet stops or the agent is broken."""
        pause, hopeless = self._first, 0
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            begun = loop.time()
            code = await self._once(agent)
            if self._stopping.is_set():
                # After a clean stop, earlier complaints are not the reason of a failure.
                agent.last = agent.last if code else ""
                break
            hopeless = 0 if agent.was_ready else hopeless + 1
            if code == BROKEN_EXIT or hopeless == _HOPELESS:
                agent.last = agent.last or f"ended with exit code {code}"
                self._show(agent, "broken")
                return
            agent.crashes += 1
            agent.last = f"ended with exit code {code}" + (f": {agent.last}" if agent.last else "")
            self._show(agent, "restarting")
            pause = self._first if loop.time() - begun > _STEADY_SECONDS else pause
            with contextlib.suppress(TimeoutError):
                # Random, so that agents that crashed together do not restart together.
                await asyncio.wait_for(self._stopping.wait(), pause * (0.75 + random.random() / 2))  # noqa: S311
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        self._show(agent, "stopped")

    async def _once(self, agent: AgentState) -> int:
        agent.was_ready = False
        self._show(agent, "starting")
        process = await asyncio.create_subprocess_exec(
            *self._command(agent.name),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            start_new_session=True,
        )
        stopping = asyncio.create_task(self._stopping.wait())
        hearing = asyncio.create_task(self._hear(agent, process))
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

    async def _hear(self, agent: AgentState, process: asyncio.subprocess.Process) -> None:
        """Read the events of the process until it ends."""
        await asyncio.gather(self._follow(agent, process.stdout), self._complaints(agent, process.stderr))
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()

    async def _follow(self, agent: AgentState, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (line := await _line(stream)) is not None:
            with contextlib.suppress(msgspec.DecodeError):
                self._take(agent, msgspec.json.decode(line, type=Told))

    async def _complaints(self, agent: AgentState, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (line := await _line(stream)) is not None:
            agent.last = line.decode("utf-8", "replace").strip()[:200] or agent.last

    def _take(self, agent: AgentState, told: Told) -> None:
        agent.last = told.reason[:200]
        agent.was_ready = True
        if told.event == "paused":
            self._show(agent, "paused")
            return
        if told.event == "working":
            agent.task_id, agent.title = told.task_id, told.title
            self._show(agent, "working")
            return
        agent.task_id = agent.title = ""
        agent.cost_usd += told.cost_usd
        if told.event in ("verified", "failed", "blocked"):
            setattr(agent, told.event, getattr(agent, told.event) + 1)
        self._show(agent, "idle")

    def _show(self, agent: AgentState, state: State) -> None:
        agent.state = state
        self._changed()


async def _line(stream: asyncio.StreamReader) -> bytes | None:
    """Return the next line; None at the end. A line that is too long is skipped."""
    while True:
        try:
            return await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as ended:
            return ended.partial or None
        except asyncio.LimitOverrunError as long:
            await stream.readexactly(long.consumed)


def own_command(file: str, options: Sequence[str]) -> Callable[[str], Sequence[str]]:
    """Return the function that builds the command line of one agent."""
    return lambda name: [sys.executable, "-m", "redkey", "run", "--fleet", file, "--agent", name, *options]
