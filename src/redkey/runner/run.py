"""Running one agent: the worker of the SDK with a `Cycle` as its handler, and what is told of each task."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from redkey.client import RedKey
from redkey.client.worker import AsyncContext, Block, Done, Fail, Tally
from redkey.errors import ConfigRefused
from redkey.runner.agent import Agent
from redkey.runner.cycle import Cycle
from redkey.runner.spec import Spec, build

_log = logging.getLogger("redkey.runner")


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to a task in this runner's hands."""

    agent: str
    event: str
    at: str
    task_id: str = ""
    title: str = ""
    reason: str = ""
    cost_usd: float = 0.0
    seconds: float = 0.0


Tell = Callable[[Told], None]


def run_agent(spec: Spec, rk: RedKey, tell: Tell) -> Tally:
    """Run an agent until it is stopped; it is registered by its card, and gets the roles that its spec names."""
    agent = build(spec)
    removed = agent.workplace.sweep()
    if removed:
        _log.info("removed %d places of runners that are gone", removed)
    handler = _Told(Cycle(agent, rk, workspace_of(rk)), agent.slug, tell)
    rk.worker(
        queue=spec.queue,
        roles=spec.roles,
        agent=_registered(agent, rk),
        concurrency=spec.concurrency,
        lease_seconds=spec.lease_seconds,
    )(handler)
    tell(Told(agent.slug, "ready", _now()))
    return rk.run(grace_seconds=spec.grace_seconds)


def _registered(agent: Agent, rk: RedKey) -> str:
    """How the agent is known at the server: the one with its slug, under the card that it has now."""
    if agent.card is None:
        return agent.slug
    card: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(agent.card))
    card["identity"]["slug"] = agent.slug
    for found in rk.agents.list(slug=agent.slug):
        if rk.agents.get(found.agent_id).card != card:
            rk.agents.update(found.agent_id, card=card)
        return found.agent_id
    return rk.agents.register(card=card, framework="redkey").agent_id


def workspace_of(rk: RedKey) -> str:
    """The workspace that the key opens."""
    for found in rk.workspaces.list():
        return found.workspace_id
    raise ConfigRefused("the key opens no workspace")


class _Told:
    """A handler that tells of what it handles."""

    def __init__(self, cycle: Cycle, slug: str, tell: Tell) -> None:
        self._cycle, self._slug, self._tell = cycle, slug, tell
        self.__name__ = slug

    async def __call__(self, ctx: AsyncContext) -> Done:
        begun = time.monotonic()

        def told(event: str, **more: Any) -> None:
            seconds = round(time.monotonic() - begun, 3)
            self._tell(Told(self._slug, event, _now(), ctx.task.task_id, ctx.task.title, seconds=seconds, **more))

        told("working")
        try:
            done = await self._cycle(ctx)
        except Block as block:
            told("blocked", reason=f"{block.blocker_type}: {block.reason}")
            raise
        except Fail as fail:
            told("failed", reason=fail.reason)
            raise
        except BaseException as cause:
            told("stopped", reason=type(cause).__name__)
            raise
        told("verified", cost_usd=done.cost_usd or 0.0)
        return done


def _now() -> str:
    return datetime.now(UTC).strftime("%H:%M:%S")
