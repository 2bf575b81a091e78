"""Runs an agent's runtime on a bus: performs the actions that the state machine returns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from redkey.bus.client.aio import AsyncBusClient
from redkey.bus.client.core import Envelope
from redkey.bus.client.requests import AgentInfo
from redkey.bus.runtime.events import AgentsUpdated, Peer
from redkey.bus.runtime.model import Model, ask
from redkey.bus.runtime.owner import Action, AgentRuntime, AskModelAction, SendAction, ShowAction
from redkey.errors import BusRefused, RedKeyError


class Driver:
    """Runs one agent: receives messages, asks its model, and sends the results."""

    def __init__(
        self,
        client: AsyncBusClient,
        owner: AgentRuntime,
        model: Model,
        show: Callable[[ShowAction], None],
        *,
        on_event: Callable[[Envelope], None] | None = None,
    ) -> None:
        """`on_event` gets the events of the session other than messages."""
        self._client, self._owner, self._model, self._show = client, owner, model, show
        self._on_event = on_event
        self._asking: set[asyncio.Task[None]] = set()
        self._doing = asyncio.Lock()

    async def run(self) -> None:
        """Run until the connection is lost for good."""
        await self._look_around()
        watching = asyncio.create_task(self._watch())
        try:
            while True:
                message = await self._client.receive()
                await self._do(self._owner.received(message))
        finally:
            for task in (watching, *self._asking):
                task.cancel()
                with suppress(asyncio.CancelledError, RedKeyError):
                    await task

    async def say(self, text: str) -> None:
        """Process a line of the local user."""
        await self._look_around()
        await self._do(self._owner.local(text))

    async def _watch(self) -> None:
        """Follow the agents and their names."""
        while True:
            event = await self._client.event()
            if self._on_event is not None:
                self._on_event(event)
            if str(event.get("type", "")).startswith("agent."):
                await self._look_around()

    async def _look_around(self) -> None:
        agents = await self._client.agents()
        self._owner.agents(AgentsUpdated(self._client.session, _peers(agents)))

    async def _do(self, actions: Sequence[Action]) -> None:
        waiting = deque(actions)
        while waiting:
            action = waiting.popleft()
            if isinstance(action, ShowAction):
                self._show(action)
            elif isinstance(action, AskModelAction):
                task = asyncio.create_task(self._ask(action))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
            else:
                await self._send(action)

    async def _send(self, action: SendAction) -> None:
        try:
            async with self._doing:
                sent = await self._client.send(
                    action.dst,
                    action.text,
                    kind=action.kind,
                    conversation=action.conversation,
                    reply_to=action.reply_to,
                )
        except BusRefused as refused:
            self._show(ShowAction(f"{action.dst}: {refused.message}", "error"))
        else:
            self._owner.sent(sent)
            self._show(ShowAction(f"-> {self._owner.label(action.dst)}: {action.text}", "sent"))

    async def _ask(self, action: AskModelAction) -> None:
        try:
            output = await ask(self._model, action.prompt)
        except RedKeyError as failed:
            await self._do(self._owner.failed(failed.message))
        else:
            await self._do(self._owner.output(output))


def _peers(agents: Sequence[AgentInfo]) -> tuple[Peer, ...]:
    return tuple(Peer(agent.id, agent.name, agent.lead) for agent in agents)
