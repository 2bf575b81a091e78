"""For random schedules of sends, acks, disconnects, restarts and crashes: every accepted message reaches each agent it
is addressed to, in order, and the application of each agent sees it once."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from redkey.bus.bus import Bus
from redkey.bus.client.core import Received
from redkey.bus.envelope import ALL_AGENTS, VERSION, Ack, Envelope
from redkey.bus.limits import BusLimits
from redkey.bus.log import BusLog
from redkey.bus.mailbox import OutgoingMessage
from redkey.bus.model import SessionRecord, SessionState
from redkey.bus.routing import router
from redkey.errors import BusRefused

AGENTS = ("ann", "bob", "cid")
SESSION = "schedule"


class Wire:
    """A connection: written lines wait to be read, and a cut loses the unread ones."""

    def __init__(self) -> None:
        self.paused = False
        self.lines: list[bytes] = []

    def deliver(self, parcel: OutgoingMessage) -> None:
        self.write(parcel.line)

    def write(self, line: bytes) -> None:
        self.lines.append(line)

    def tell(self, record: SessionRecord, agent_id: str) -> None: ...

    def part(self, session: SessionState) -> None: ...


class Inbox:
    """The side of an agent: what arrived, and what its application got."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.wire: Wire | None = None
        self._received = Received()
        self.seen: list[str] = []
        self.unconfirmed: list[str] = []
        self.arrived = 0

    def read(self) -> None:
        while self.wire is not None and self.wire.lines:
            envelope = json.loads(self.wire.lines.pop(0))
            assert envelope["dst"] == self.agent
            self.arrived += 1
            if self._received.first(envelope["id"]):
                self.seen.append(envelope["id"])
            self.unconfirmed.append(envelope["id"])


class Run:
    """A bus, its agents, and the messages that it accepted."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.inboxes = {agent: Inbox(agent) for agent in AGENTS}
        self.promised: dict[str, list[str]] = {agent: [] for agent in AGENTS}
        self._ids = 0

    async def begin(self) -> None:
        self._log = BusLog(self._home)
        self.bus = Bus(
            self._log,
            BusLimits(window=4, deliveries=2),
            wall=time.time_ns,
            ids=lambda: str(uuid.uuid4()),
            route=router(),
            on_fatal=_fail,
        )

    async def settle(self) -> None:
        """Wait until all decisions are durable and published."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.bus.commits.add([], lambda _: future.set_result(None))
        await future

    async def create(self) -> None:
        self.bus.create_session("test", None, _ignore, session_id=SESSION)
        for agent in AGENTS:
            self.bus.add_agent(SESSION, agent, None, _ignore)
        await self.settle()

    def connect(self, agent: str) -> None:
        inbox = self.inboxes[agent]
        if inbox.wire is None:
            inbox.wire = Wire()
            self.bus.add_agent(SESSION, agent, None, _ignore, member=inbox.wire)

    def disconnect(self, agent: str) -> None:
        inbox = self.inboxes[agent]
        if inbox.wire is not None:
            self.bus.leave(inbox.wire, SESSION, agent)
            inbox.wire = None

    def pause(self, agent: str, *, paused: bool) -> None:
        wire = self.inboxes[agent].wire
        if wire is not None:
            wire.paused = paused
            if not paused:
                self.bus.resume(SESSION, agent)

    def send(self, src: str, dst: str | None, again: bool) -> None:
        """Send to one agent or to all; `again` sends it twice, as after a lost reply."""
        self._ids += 1
        key = f"m-{self._ids}"
        topic = ALL_AGENTS if dst is None else None
        ack = Ack("auto", 50)
        envelope = Envelope(
            v=VERSION, type="message.send", id=key, ts="2026-01-01T00:00:00Z", src=src, dst=dst, topic=topic,
            payload={"text": key}, ack=ack,
        )  # fmt: skip
        receivers = [agent for agent in AGENTS if agent != src] if dst is None else [dst]

        def done(refused: BusRefused | None) -> None:
            if refused is None and key not in self.promised[receivers[0]]:
                for receiver in receivers:
                    self.promised[receiver].append(key)

        for _ in range(2 if again else 1):
            self.bus.send(SESSION, envelope, done)

    def confirm(self, agent: str, lost: bool) -> None:
        """Let the agent confirm its messages; with `lost`, the confirmation never arrives."""
        inbox = self.inboxes[agent]
        keys, inbox.unconfirmed = inbox.unconfirmed, []
        for key in keys:
            if not lost and inbox.wire is not None:
                self.bus.confirm(SESSION, agent, key)

    async def restart(self, *, crash: bool) -> None:
        """Stop the bus, or crash it; then start again from what is durable."""
        for agent in AGENTS:
            self.inboxes[agent].wire = None
        if crash:
            # Nothing from the old process has an effect any more, accepted messages included.
            self.bus._publish = lambda *_: None  # type: ignore[method-assign]
            self.bus._deliveries.stop()
            await self.bus.commits.stop()
            self._log.close()
        else:
            await self.bus.stop()
        await self.begin()

    async def finish(self) -> None:
        """Reconnect all agents and read everything; lost confirmations would otherwise wait for the timer."""
        await self.settle()
        for agent in AGENTS:
            self.disconnect(agent)
            self.connect(agent)
        while True:
            await self.settle()
            before = [inbox.arrived for inbox in self.inboxes.values()]
            for agent in AGENTS:
                self.inboxes[agent].read()
                self.confirm(agent, lost=False)
            await self.settle()
            if before == [inbox.arrived for inbox in self.inboxes.values()]:
                break
        await self.bus.stop()


def _ignore(refused: BusRefused | None) -> None:
    assert refused is None


def _fail(cause: BaseException) -> None:
    raise AssertionError(cause)


agents = st.sampled_from(AGENTS)
steps = st.one_of(
    st.tuples(st.just("send"), agents, st.one_of(st.none(), agents), st.booleans()),
    st.tuples(st.just("send"), agents, st.one_of(st.none(), agents), st.booleans()),
    st.tuples(st.just("confirm"), agents, st.booleans()),
    st.tuples(st.just("connect"), agents),
    st.tuples(st.just("read"), agents),
    st.tuples(st.just("disconnect"), agents),
    st.tuples(st.just("pause"), agents, st.booleans()),
    st.tuples(st.just("restart"), st.booleans()),
)


async def _play(home: Path, schedule: list[Any]) -> Run:
    run = Run(home)
    await run.begin()
    await run.create()
    for (name, *arguments), settles in schedule:
        if name == "send" and arguments[0] != arguments[1]:
            run.send(*arguments)
        elif name == "confirm":
            run.confirm(*arguments)
        elif name == "read":
            run.inboxes[arguments[0]].read()
        elif name == "connect":
            run.connect(*arguments)
        elif name == "disconnect":
            run.disconnect(*arguments)
        elif name == "pause":
            run.pause(arguments[0], paused=arguments[1])
        elif name == "restart":
            await run.restart(crash=arguments[0])
        if settles:
            await run.settle()
    await run.finish()
    return run


FULL_WINDOW = [
    (("connect", "bob"), True),
    *[(("send", "ann", "bob", False), True)] * 6,
    (("read", "bob"), True),
    (("confirm", "bob", True), True),
]


@example(FULL_WINDOW)
@settings(max_examples=2000 if os.environ.get("REDKEY_TEST_LONG") == "1" else 40)
@given(st.lists(st.tuples(steps, st.booleans()), min_size=20, max_size=60))
def test_every_accepted_message_arrives_in_order_and_is_seen_once(schedule: list[Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="rkbus") as folder:
        run = asyncio.run(_play(Path(folder), schedule))
    for agent, inbox in run.inboxes.items():
        assert len(set(inbox.seen)) == len(inbox.seen), "seen twice"
        promised = run.promised[agent]
        assert set(promised) <= set(inbox.seen), "accepted and lost"
        order = [key for key in inbox.seen if key in set(promised)]
        assert order == sorted(promised, key=lambda key: int(key[2:])), "out of order"
