"""What records mean for queues and inboxes."""

from __future__ import annotations

import msgspec

from redkey.reducers import gate
from redkey.reducers.agents import touch_agent
from redkey.reducers.entities import Message, Queue, Settings
from redkey.reducers.event import Event
from redkey.reducers.workspace import advance_workspace, ref_sha256
from redkey.reducers.world import World
from redkey.wire.events import (
    InboxRead,
    InboxSent,
    QueueCreated,
    QueueUpdated,
)

Void = str | None


def queue_created(world: World, e: Event, p: QueueCreated) -> Void:
    """Add a queue with its settings."""
    if e.subject in world.queues:
        return "queue_exists"
    world.queues[e.subject] = Queue(
        queue_id=e.subject,
        created_at=e.timestamp,
        content_sha256=ref_sha256(p.name_ref),
        settings=msgspec.convert(msgspec.to_builtins(p.settings), Settings),
    )
    e.changes.touch("queue", e.subject)
    return None


def queue_updated(world: World, e: Event, p: QueueUpdated) -> Void:
    """Change the settings or the name of a queue."""
    queue = world.queues.get(e.subject)
    if queue is None:
        return "unknown_queue"
    queue.stream_seq = max(queue.stream_seq, e.stream.stream_seq)
    queue.settings = msgspec.structs.replace(queue.settings, **msgspec.to_builtins(p.settings))
    if p.name_ref is not None:
        queue.content_sha256 = p.name_ref.sha256
    e.changes.touch("queue", e.subject)
    return None


def inbox_sent(world: World, e: Event, p: InboxSent) -> Void:
    """Add an inbox message; it takes the mail it fulfils off the agenda."""
    if p.message_id in world.messages:
        return "message_exists"
    world.messages[p.message_id] = Message(
        message_id=p.message_id,
        to=p.to,
        priority=p.priority,
        message_type=p.message_type,
        body_sha256=p.body_ref.sha256,
        sender=e.sender,
        sent_at=e.timestamp,
        sequence=e.sequence,
        ref_task_id=p.ref_task_id or "",
        action_required=p.action_required,
    )
    _mail_stream(world, e)
    for kind in ("mail", "gate-mail"):
        world.agenda.pop((f"{kind}:{p.to}", p.ref_task_id or ""), None)
    e.changes.touch("message", p.message_id)
    if p.message_type == "exec.gate":
        gate.mail_sent(world, e, p)
    return None


def inbox_read(world: World, e: Event, p: InboxRead) -> Void:
    """Mark an inbox message as read."""
    message = world.messages.get(p.message_id)
    if message is None:
        return "unknown_message"
    message.read_at = e.timestamp
    _mail_stream(world, e)
    # Read messages live in rows only.
    del world.messages[message.message_id]
    e.changes.touch("message", message.message_id, message)
    return None


def _mail_stream(world: World, e: Event) -> None:
    if e.stream.stream_id.startswith("agent:"):
        touch_agent(world, e)
    else:
        advance_workspace(world, e)
