"""Run one agent: the SDK's worker with a `Cycle` as its handler, and the events that the runner prints."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from redkey.client import RedKey
from redkey.client.connection import Connection, SyncSender
from redkey.client.worker import AsyncContext, Block, Done, Fail, Release, Tally
from redkey.client.worker.enlist import enlist
from redkey.errors import AgentUnavailable, ConfigRefused, Finding
from redkey.runner.accounts import label_in
from redkey.runner.agent import Agent
from redkey.runner.cycle import Cycle
from redkey.runner.keys import acting
from redkey.runner.pausing import Pause
from redkey.runner.reporting import Reports
from redkey.runner.shown_pauses import ShownPauses
from redkey.runner.spec import Spec, build
from redkey.wire.lint import Registry, lint_routes

_log = logging.getLogger("redkey.runner")
# Attempts per task in a queue that the runner creates, unless the task or the workspace's policy says otherwise.
_ATTEMPTS: Final = 3


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that the runner prints."""

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
    """Register an agent by its card, grant it the roles of its spec, and run it until it is stopped."""
    agent = build(spec)
    removed = agent.workplace.sweep()
    if removed:
        _log.info("removed %d directories of runners that have ended", removed)
    agent.logs.sweep()
    for finding in _unknown_routes(agent, rk):
        _log.warning("the card's %s: %s; such messages go to the humans", finding.pointer, finding.message)
    workspace_id, agent_id = workspace_of(rk), _registered(agent, rk)
    # The given key does what needs an admin; the runner's own key does the work.
    with closing(Connection(rk.settings, rk.policy)) as connection:
        attempts = None if _is_set(rk, workspace_id) else _ATTEMPTS
        enlist(SyncSender(connection, rk.policy), agent_id, agent.slug, spec.queue, spec.roles, attempts)
    if attempts is not None and rk.queues.get(spec.queue).max_attempts == 1:
        hint = "tasks of %s are tried once unless they ask for more; for all: redkey queue update %s --max-attempts %d"
        _log.warning(hint, spec.queue, spec.queue, attempts)
    with acting(rk, Path(spec.work), workspace_id) as own:
        return _work(spec, agent, own, agent_id, workspace_id, tell)


def _is_set(rk: RedKey, workspace_id: str) -> bool:
    """Return whether the workspace has a retry policy; then a new queue sets no attempts of its own."""
    return rk.workspaces.policy(workspace_id).retry.max_attempts > 1


def _work(spec: Spec, agent: Agent, rk: RedKey, agent_id: str, workspace_id: str, tell: Tell) -> Tally:
    account = label_in(workspace_id, spec, agent.pauses.account)

    def paused(pause: Pause) -> None:
        tell(Told(agent.slug, "paused", _now(), reason=f"until {_clock(pause.until)}: {pause.reason}"))

    shown = ShownPauses(agent.pauses, rk, agent_id, account, paused)
    handler = _Told(Cycle(agent, rk, workspace_id), agent, shown, tell)
    rk.worker(
        queue=spec.queue,
        roles=spec.roles,
        agent=agent_id,
        concurrency=spec.concurrency,
        lease_seconds=spec.lease_seconds,
        pause=shown.seconds,
    )(handler)
    tell(Told(agent.slug, "ready", _now()))
    return rk.run(grace_seconds=spec.grace_seconds, log="quiet")


def _registered(agent: Agent, rk: RedKey) -> str:
    """Register the agent, or update the card of the agent with its slug; return its id."""
    if agent.card is None:
        return agent.slug
    card: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(agent.card))
    card["identity"]["slug"] = agent.slug
    for found in rk.agents.list(slug=agent.slug):
        if rk.agents.get(found.agent_id).card != card:
            rk.agents.update(found.agent_id, card=card)
        return found.agent_id
    return rk.agents.register(card=card, framework="redkey").agent_id


def _unknown_routes(agent: Agent, rk: RedKey) -> list[Finding]:
    """Return the findings of `redkey card lint --registry` on the card's routes, with the server's agents and roles.

    They are only warnings: agents of a fleet start together, and the named one may be registered a moment later.
    """
    if agent.card is None or not agent.card.escalation_rules:
        return []
    agents = frozenset(found.slug for found in rk.agents.list())
    roles = frozenset(found.id for found in rk.roles.list())
    return list(lint_routes(agent.card, Registry(agents | {agent.slug}, roles, frozenset())))


def workspace_of(rk: RedKey) -> str:
    """Return the workspace of the key."""
    for found in rk.workspaces.list(own=True):
        return found.workspace_id
    raise ConfigRefused("the key belongs to no workspace")


class _Told:
    """Wraps a cycle: prints events, and releases tasks that the agent cannot work on now."""

    def __init__(self, cycle: Cycle, agent: Agent, shown: ShownPauses, tell: Tell) -> None:
        self._cycle, self._agent, self._slug, self._shown, self._tell = cycle, agent, agent.slug, shown, tell
        self.__name__ = agent.slug

    async def __call__(self, ctx: AsyncContext) -> Done:
        begun = time.monotonic()
        if (pause := self._agent.pauses.current()) is not None:
            # This task was claimed together with the completion of the last one, after the pause had begun.
            raise Release(pause.reason)
        reports = Reports(ctx)
        meter = self._agent.spending.meter(ctx.task.task_id, ctx.task.workflow_id, reports)

        def told(event: str, **more: Any) -> None:
            seconds = round(time.monotonic() - begun, 3)
            cost = meter.cost_usd
            self._tell(
                Told(
                    self._slug, event, _now(), ctx.task.task_id, ctx.task.title, seconds=seconds, cost_usd=cost, **more
                )
            )

        told("working")
        try:
            self._agent.spending.check()
            try:
                done = await self._cycle(ctx, meter)
            finally:
                if meter.used:
                    await asyncio.shield(reports.send())
        except AgentUnavailable as away:
            self._agent.pauses.begin(away)
            told("released", reason=away.message)
            # Report the pause before the release, so that no other runner of the account claims the task.
            await asyncio.to_thread(self._shown.seconds)
            raise Release(away.message) from away
        except Block as block:
            told("blocked", reason=f"{block.blocker_type}: {block.reason}")
            raise
        except Fail as fail:
            told("failed", reason=fail.reason)
            raise
        except BaseException as cause:
            told("stopped", reason=type(cause).__name__)
            raise
        told("verified", reason=done.summary or "")
        return done


def _clock(at: float) -> str:
    """Format a time; a pause without an end lasts until the next start of the runner."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at < 1e11 else "the next start"


def _now() -> str:
    return datetime.now(UTC).strftime("%H:%M:%S")
