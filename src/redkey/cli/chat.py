"""The terminal of `redkey bus chat`: lines of the user in, messages of the session out.

On a terminal, the typed line stays below the output, can be edited and has a history; otherwise lines are read from
standard input.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

import msgspec

from redkey.bus import AsyncBusClient
from redkey.bus.client.core import Envelope
from redkey.bus.runtime.chatting import Chat, Outgoing
from redkey.bus.runtime.driver import Driver
from redkey.bus.runtime.events import Peer
from redkey.bus.runtime.model import CommandModel
from redkey.bus.runtime.owner import AgentRuntime, ShowAction
from redkey.cli.report import shown
from redkey.errors import BusLost, BusRefused, RedKeyError

_HELP = "#name addresses an agent, ##word is a plain word; /agents, /to NAME, /name NAME, /quit"


class Typed(msgspec.Struct, frozen=True):
    """A typed line, and its recipients when typing began."""

    text: str
    recipients: tuple[str, ...] | None = None


class Input(Protocol):
    """A source of input lines."""

    def lines(self) -> AsyncIterator[Typed]:
        """Yield lines until the input ends."""
        ...


def run(home: Path, session: str, agent: str, name: str | None, model: Sequence[str] | None, *, leaves: bool) -> int:
    """Chat until the input or the session ends; return the exit code."""
    try:
        return asyncio.run(_run(home, session, agent, name, model, leaves))
    except KeyboardInterrupt:
        return 130


async def _run(
    home: Path, session: str, agent: str, name: str | None, model: Sequence[str] | None, leaves: bool
) -> int:
    async with AsyncBusClient(home, reconnect_seconds=10) as bus:
        await bus.join(session, agent, name)
        with ExitStack() as stack:
            talk = Talk(bus, agent, model)
            source: Input = Terminal(talk.chat, stack) if sys.stdin.isatty() else StandardInput()
            _say(f"You are {agent}. {_HELP}.")
            try:
                await talk.run(source)
            except BusLost as lost:
                _say(f"[error] {lost.message}")
                return 1
            finally:
                if leaves:
                    with suppress(RedKeyError):
                        await bus.leave()
    return 0


class Talk:
    """A person in a session, with or without a model that answers and relays."""

    def __init__(self, bus: AsyncBusClient, agent: str, model: Sequence[str] | None) -> None:
        self._bus = bus
        self.chat = Chat(agent, lambda: str(uuid.uuid4()))
        self._driver: Driver | None = None
        if model is not None:
            owner = AgentRuntime(agent, lambda: str(uuid.uuid4()))
            self._driver = Driver(bus, owner, CommandModel(model), _show, on_event=self._show_event)
        self._over = asyncio.Event()
        self._sending = asyncio.Lock()

    async def run(self, source: Input) -> None:
        """Run until the input or the session ends."""
        await self._look_around()
        working = [asyncio.create_task(work) for work in (self._type(source), *self._hearing())]
        over = asyncio.create_task(self._over.wait())
        try:
            done, _ = await asyncio.wait((over, *working), return_when=asyncio.FIRST_COMPLETED)
            for task in done if not self._over.is_set() else ():
                _check_end(task)
        finally:
            for task in (over, *working):
                task.cancel()
            # Their errors no longer matter.
            await asyncio.wait((over, *working))
            for task in working:
                if not task.cancelled():
                    task.exception()

    def _hearing(self) -> list[Coroutine[Any, Any, None]]:
        return [self._driver.run()] if self._driver is not None else [self._hear(), self._watch()]

    async def _type(self, source: Input) -> None:
        async for typed in source.lines():
            if not await self._process(typed):
                return

    async def _hear(self) -> None:
        while True:
            message = await self._bus.receive()
            # An answer is shown after the line that says where the question went.
            async with self._sending:
                _say(self.chat.received(message))

    async def _watch(self) -> None:
        while True:
            self._show_event(await self._bus.event())

    def _show_event(self, event: Envelope) -> None:
        line = self.chat.happened(event)
        if line is not None:
            _say(f"* {line}")
        if event.get("type") == "session.closed":
            self._over.set()

    async def _look_around(self) -> None:
        self.chat.agents([Peer(agent.id, agent.name, agent.lead) for agent in await self._bus.agents()])

    async def _process(self, typed: Typed) -> bool:
        """Process a line; false if it ends the chat."""
        line = typed.text.strip()
        word, _, rest = line.partition(" ")
        try:
            if word == "/quit":
                return False
            if word == "/agents":
                for agent in await self._bus.agents():
                    _say(f"  {agent.name or agent.id}  #{agent.id}  {'online' if agent.online else 'away'}")
            elif word == "/name":
                await self._bus.rename(rest)
                _say(f"You are now {rest.strip()}.")
            elif word == "/to":
                await self._address(rest)
            elif word.startswith("/"):
                _say(f"unknown command {word}; {_HELP}")
            elif line and self._driver is not None:
                await self._driver.say(line)
            elif line:
                await self._send(line, typed.recipients)
        except BusRefused as refused:
            _say(f"[error] {refused.message} [{refused.code}]")
        return True

    async def _address(self, names: str) -> None:
        """Set the recipients of lines without a mention."""
        await self._look_around()
        mentioned = " ".join(f"#{word.lstrip('#')}" for word in names.split())
        line = self.chat.compose(mentioned, ())
        if isinstance(line, str):
            _say(line)
        else:
            self.chat.recipients = line.targets
            _say(f"lines without a mention go to {self.chat.labels(line.targets)}")

    async def _send(self, text: str, recipients: tuple[str, ...] | None) -> None:
        await self._look_around()
        line = self.chat.compose(text, recipients)
        if isinstance(line, str):
            _say(line)
            return
        here = {agent.id: agent.online for agent in await self._bus.agents()}
        async with self._sending:
            for dst in line.targets:
                await self._bus.send(
                    dst, line.text, kind=line.kind, conversation=line.conversation, reply_to=line.reply_to
                )
            self.chat.sent(line)
            _say(f"-> {self._recipients(line, here)}")

    def _recipients(self, line: Outgoing, here: dict[str, bool]) -> str:
        return ", ".join(f"{self.chat.label(key)}{'' if here.get(key) else ' (away)'}" for key in line.targets)


class StandardInput:
    """The lines of standard input, read by a thread."""

    async def lines(self) -> AsyncIterator[Typed]:
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[str] = asyncio.Queue()

        def read() -> None:
            line = "?"
            while line:
                line = sys.stdin.readline()
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(lines.put_nowait, line)

        # A daemon thread, because the end of the session must not wait for another line.
        Thread(target=read, daemon=True).start()
        while line := await lines.get():
            yield Typed(line)


class Terminal:
    """A line editor below the output. Its prompt names the recipients, which are fixed while the person types."""

    def __init__(self, chat: Chat, stack: ExitStack) -> None:
        # Imported here, because other commands do not need it.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory
        from prompt_toolkit.patch_stdout import patch_stdout

        self._chat = chat
        self._fixed: tuple[str, ...] | None = None
        self._session: PromptSession[str] = PromptSession(history=InMemoryHistory())
        self._session.default_buffer.on_text_changed += lambda buffer: self._fix(buffer.text)
        stack.enter_context(patch_stdout())

    async def lines(self) -> AsyncIterator[Typed]:
        while True:
            self._fixed = None
            try:
                text = await self._session.prompt_async(self._prompt)
            except EOFError:
                return
            yield Typed(text, self._fixed)

    def _fix(self, text: str) -> None:
        """Fix the recipients at the first character; an empty line follows the last writer again."""
        if not text:
            self._fixed = None
        elif self._fixed is None:
            self._fixed = self._chat.recipients

    def _prompt(self) -> str:
        recipients = self._chat.recipients if self._fixed is None else self._fixed
        return f"{shown(self._chat.labels(recipients))}> " if recipients else "> "


def _check_end(task: asyncio.Task[Any]) -> None:
    """Raise the error of a task, unless the session was closed."""
    try:
        task.result()
    except BusRefused as refused:
        if refused.code != "session_closed":
            raise


def _show(one: ShowAction) -> None:
    _say(one.text if one.kind in ("answer", "summary", "message", "sent") else f"[{one.kind}] {one.text}")


def _say(text: str) -> None:
    for line in text.splitlines() or [""]:
        # Not by click, which would bypass the line editor's standard output.
        sys.stdout.write(shown(line) + "\n")
    sys.stdout.flush()
