"""What a shell offers for names and ids: queues, roles, agents, tasks, claims, messages and so on.

Only a process that completes uses this. A server that does not answer at once, or refuses, is no reason to disturb a
person who types: then nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from redkey.client import RedKey

_MOST = 50
_SECONDS = 2.0
# So many agents are asked for their messages, one request each.
_MOST_AGENTS = 10
# The states in which a task is most often meant, first.
_STATES: tuple[Any, ...] = (
    "available",
    "claimed",
    "working",
    "blocked",
    "created",
    "failed",
    "awaiting_approval",
    "completed",
)
Found = Iterable[tuple[str, str]]


def _tasks(rk: RedKey) -> Found:
    for state in _STATES:
        for queue in rk.queues.list():
            for task in rk.tasks.list(queue.queue_id, state=state):
                yield task.task_id, f"{task.state}: {task.title}"


def _keys(rk: RedKey) -> Found:
    for workspace in rk.workspaces.list():
        for key in rk.keys.list(workspace.workspace_id):
            yield key.key_id, key.name or ""


def _queues(rk: RedKey) -> Found:
    return ((one.queue_id.removeprefix("queue_"), one.description) for one in rk.queues.list())


def _roles(rk: RedKey) -> Found:
    return ((one.id.removeprefix("role_"), one.description) for one in rk.roles.list())


def _agents(rk: RedKey) -> Found:
    return ((one.slug, "") for one in rk.agents.list())


def _runs(rk: RedKey) -> Found:
    return ((one.workflow_id, one.name) for one in rk.workflows.list())


def _gates(rk: RedKey) -> Found:
    return ((one.gate_id, "") for one in rk.gates.list())


def _claims(rk: RedKey) -> Found:
    """The claims that hold tasks: nobody types one that has ended."""
    held: tuple[Any, ...] = ("working", "claimed", "blocked")
    for state in held:
        for queue in rk.queues.list():
            for task in rk.tasks.list(queue.queue_id, state=state):
                claim = rk.tasks.get(task.task_id).claim
                if claim is not None:
                    yield claim.claim_id, f"{task.state}: {task.title}"


def _messages(rk: RedKey) -> Found:
    """Messages that were not read: those to the humans, then those to the first agents."""
    for to in (None, *(agent.agent_id for agent in islice(rk.agents.list(), _MOST_AGENTS))):
        for message in rk.inbox.list(to=to, unread=True):
            yield message.message_id, message.subject


def _webhooks(rk: RedKey) -> Found:
    return ((one.webhook_id, one.receiver_url) for one in rk.webhooks.list())


def _projects(rk: RedKey) -> Found:
    return ((one.id, one.name) for one in rk.projects.list())


def _events(rk: RedKey) -> Found:
    return ((one.event_id, f"{one.type} {one.subject.id}") for one in rk.ledger.query(order="desc", limit=_MOST))


# Name of a parameter -> what it may be.
_SOURCES: dict[str, Callable[[RedKey], Found]] = {
    **dict.fromkeys(("task_id", "ref_task_id", "depends_on"), _tasks),
    **dict.fromkeys(("queue", "queue_id"), _queues),
    **dict.fromkeys(("role", "roles", "role_id"), _roles),
    **dict.fromkeys(("agent", "agent_id"), _agents),
    "workflow_id": _runs,
    "gate_id": _gates,
    "key_id": _keys,
    "claim_id": _claims,
    "message_id": _messages,
    "webhook_id": _webhooks,
    "event_id": _events,
    "project_id": _projects,
}


class Suggested(click.ParamType):  # type: ignore[type-arg]
    """A text for which the shell offers what the server has."""

    name = "text"

    def __init__(self, source: Callable[[RedKey], Found]) -> None:
        self._source = source

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return what begins as the word does; an id may be typed with or without what it begins with."""
        from redkey.cli.session import connect
        from redkey.errors import RedKeyError

        try:
            with connect(ctx.params.get("url"), ctx.params.get("data")) as rk:
                found = list(islice(self._source(rk.with_options(timeout=_SECONDS, max_retries=0)), _MOST))
        except (RedKeyError, OSError):
            return []
        items = []
        for name, about in found:
            bare = name.partition("_")[2] if name.partition("_")[2].isupper() else name
            offered = next((one for one in (name, bare) if one.startswith(incomplete)), None)
            if offered is not None:
                items.append(CompletionItem(offered, help=about))
        return items


def suggest(command: click.Command) -> click.Command:
    """Give the parameters of a command, and of its subcommands, what the shell may offer."""
    for parameter in command.params:
        source = _SOURCES.get(parameter.name or "")
        talks = any(one.name == "url" for one in command.params)
        if source is not None and talks and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = Suggested(source)
    children: dict[str, Any] = getattr(command, "commands", {})
    for child in children.values():
        suggest(child)
    return command
