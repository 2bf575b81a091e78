"""The terminal of `redkey bus chat`: lines of the user in, messages of the session out."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from redkey.bus import AsyncBusClient
from redkey.bus.runtime.driver import Driver
from redkey.bus.runtime.events import Peer
from redkey.bus.runtime.model import CommandModel
from redkey.bus.runtime.owner import Owner, Show
from redkey.bus.runtime.targets import mentions
from redkey.cli.report import shown
from redkey.errors import BusLost, BusRefused, RedKeyError


def run(home: Path, session: str, agent: str, name: str | None, model: Sequence[str] | None, *, leaves: bool) -> int:
    """Talk until the end of input; the exit code."""
    try:
        asyncio.run(_run(home, session, agent, name, model, leaves))
    except KeyboardInterrupt:
        return 130
    return 0


async def _run(
    home: Path, session: str, agent: str, name: str | None, model: Sequence[str] | None, leaves: bool
) -> None:
    async with AsyncBusClient(home, reconnect_seconds=10) as bus:
        await bus.join(session, agent, name)
        chat = Chat(bus, agent)
        driver = _driver(bus, agent, model) if model is not None else None
        hearing = asyncio.create_task(driver.run() if driver is not None else chat.hear())
        _say(f"You are {agent}. Mention agents with #name; /agents, /name NAME, /quit.")
        try:
            async for line in _lines():
                if driver is not None and not line.startswith("/"):
                    await driver.say(line)
                elif not await chat.take(line):
                    break
        finally:
            hearing.cancel()
            with suppress(asyncio.CancelledError, RedKeyError):
                await hearing
            if leaves:
                with suppress(BusLost, BusRefused):
                    await bus.leave()


def _driver(bus: AsyncBusClient, agent: str, model: Sequence[str]) -> Driver:
    def show(one: Show) -> None:
        _say(one.text if one.kind in ("answer", "summary", "message") else f"[{one.kind}] {one.text}")

    return Driver(bus, Owner(agent, lambda: str(uuid.uuid4())), CommandModel(model), show)


class Chat:
    """What the lines of a terminal mean."""

    def __init__(self, bus: AsyncBusClient, agent: str) -> None:
        self._bus, self._agent = bus, agent
        self._to: list[str] = []

    async def hear(self) -> None:
        """Show what comes."""
        while True:
            message = await self._bus.receive()
            _say(f"{message.sender_name or message.src}: {message.text}")

    async def take(self, line: str) -> bool:
        """Do what a line says; false when it says that it is over."""
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "/quit":
                return False
            if word == "/agents":
                for one in await self._bus.agents():
                    _say(f"  {one.name or one.id}  {one.id}  {'online' if one.online else 'away'}")
            elif word == "/name":
                await self._bus.rename(rest)
            elif word.startswith("/"):
                _say(f"there is no {word}; /agents, /name NAME, /quit")
            elif line.strip():
                await self._send(line.strip())
        except BusRefused as refused:
            _say(f"[error] {refused.message} [{refused.code}]")
        return True

    async def _send(self, text: str) -> None:
        peers = [Peer(one.id, one.name, one.lead) for one in await self._bus.agents()]
        self._to = mentions(text, peers, self._agent) or self._to
        if not self._to:
            _say("mention somebody with #name; /agents shows who is here")
            return
        conversation = (str(uuid.uuid4()), self._agent)
        for dst in self._to:
            await self._bus.send(dst, text, conversation=conversation)


async def _lines() -> AsyncIterator[str]:
    """The lines of standard input, read beside the event loop."""
    loop = asyncio.get_running_loop()
    prompts = sys.stdin.isatty()
    while True:
        if prompts:
            click.echo("> ", nl=False)
        line = await loop.run_in_executor(None, sys.stdin.readline)
        if not line:
            return
        yield line


def _say(text: str) -> None:
    for line in text.splitlines() or [""]:
        click.echo(shown(line))
    sys.stdout.flush()
