"""The operations of A2A over RedKey's use cases, the same for every transport.

A transport parses a request into the structs of `redkey.a2a.requests`, builds a `Call` for its caller, and encodes what
the gateway returns: JSON values in the shapes of the protocol, or a stream of events.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from redkey.a2a import messages, push_configs, requests
from redkey.a2a.call import Call, Event, first_event, shown_event, shown_task
from redkey.a2a.errors import invalid, refused, translated
from redkey.commands.decision import Refused
from redkey.errors import RedKeyError
from redkey.services import repeats
from redkey.services.caller import Pending
from redkey.services.following import check_reached
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_cases import a2a_tasks, queues
from redkey.services.use_cases.a2a_cards import list_skills
from redkey.services.use_cases.a2a_tasks import Sighted, Wanted
from redkey.shapes.operation import PRODUCE, Operation
from redkey.shapes.queues import NewQueue
from redkey.shapes.roles import Role
from redkey.shapes.tasks import NewTask
from redkey.wire.a2a_contract import projection
from redkey.wire.names import queue_id
from redkey.wire.times import parse_time

Json = dict[str, Any]

# One idempotency scope for all transports, so a send may be repeated over another transport.
_SEND = Operation("a2a_send_message", "POST", "/a2a/message:send", PRODUCE)
_POSITION = re.compile(r"([1-9][0-9]{0,14})(?:\.([1-9][0-9]{0,2}))?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")
_PAGE = 50
_encode = msgspec.json.Encoder().encode


class Gateway:
    """RedKey as an A2A agent."""

    def __init__(self, default_queue: str, card: Callable[[Sequence[Role]], Json]) -> None:
        """`card` builds the extended card for a workspace with these roles."""
        self._default_queue, self._card = default_queue, card

    async def extended_card(self, call: Call, request: requests.Nothing) -> Json:
        """Return the extended card of the caller's workspace."""
        return self._card(list_skills(call.caller))

    # Messages.

    async def send(self, call: Call, request: requests.SendMessage) -> Json:
        """Create or continue a task. Wait until it ends or needs its client, unless `returnImmediately` is set."""
        configuration = request.configuration or requests.Configuration()
        _check_history(configuration.history_length)
        sighted = await self._take(call, request)
        if not configuration.return_immediately:
            sighted = await self._settled(call, sighted)
        return {"task": shown_task(call, sighted, configuration.history_length)}

    def send_at_once(self, call: Call, request: requests.SendMessage) -> Pending[Json] | None:
        """Return the pending reply of a message that needs exactly one command; None for every other message.

        The caller can answer it from a callback, without a task of the event loop, like `POST /queues/{id}/tasks`.
        """
        configuration, message = request.configuration, request.message
        if configuration is None or not configuration.return_immediately or message.task_id or call.caller.is_large:
            return None
        if configuration.task_push_notification_config is not None or call.idempotency_key:
            return None
        tenant = call.tenant or request.tenant or ""
        queue = queue_id(tenant or self._default_queue)
        if not a2a_tasks.has_queue(call.caller, queue):
            return None
        length = configuration.history_length
        _check_history(length)
        sent = messages.read_message(request)
        _extend(call, message.metadata, "message.metadata")
        pending = a2a_tasks.create_task(call.caller, queue, self._task(call, request, sent), sent)
        if not isinstance(pending, Pending):
            pending.close()
            return None

        def reply(outcome: Outcome, place: Place) -> Json:
            return {"task": shown_task(call, pending.reply(outcome, place), length)}

        return Pending(pending.command, reply, pending.contents)

    def _task(self, call: Call, request: requests.SendMessage, sent: a2a_tasks.Sent) -> NewTask:
        context = messages.ledger_context(messages.wanted_context(request), call.caller.means.ids.ulid())
        skill = messages.wanted_skill(request)
        return messages.new_task(request, sent, (skill,) if skill else (), context)

    async def stream(self, call: Call, request: requests.SendMessage) -> AsyncIterator[Event]:
        """Create or continue a task and yield its updates until it ends or needs its client."""
        configuration = request.configuration or requests.Configuration()
        _check_history(configuration.history_length)
        sequence, skipped = _position(call)
        if sequence and not call.idempotency_key:
            # Without the key this would be a second message.
            text = "send the Idempotency-Key of the message too, or subscribe to its task"
            raise invalid("A message cannot be resumed without its key.", "Last-Event-ID", text)
        sighted = await self._take(call, request)
        if sequence >= sighted.sequence:
            # The client repeats its message: continue where its stream broke.
            sighted = a2a_tasks.resume_task(call.caller, sighted.task.task_id, sequence, skipped)
        else:
            # The stream of this message begins with it.
            skipped = 0
        yield first_event(call, sighted, skipped, configuration.history_length)
        if sighted.task.interrupted and not skipped:
            return
        async for told in a2a_tasks.follow_task(call.caller, sighted, skipped):
            yield shown_event(call, told)
            if told.task.interrupted and told.position == str(told.sequence):
                return

    async def _take(self, call: Call, request: requests.SendMessage) -> Sighted:
        message, caller = request.message, call.caller
        sent = messages.read_message(request)
        tenant = call.tenant or request.tenant or ""
        if call.idempotency_key:
            body = _encode([message, request.configuration, request.metadata])
            caller.identify(_SEND, call.idempotency_key, tenant.encode(), body)
        try:
            _extend(call, message.metadata, "message.metadata")
            if message.task_id:
                sighted = await self._continue(call, request, sent)
            else:
                sighted = await self._create(call, request, sent, tenant)
            wanted = request.configuration and request.configuration.task_push_notification_config
            if wanted:
                # Push every update after the state that this reply shows.
                await push_configs.set_config(call, wanted, sighted.task.task_id, sighted.sequence)
        except Refused as error:
            # If the stored answer of this idempotency key has expired, report that instead.
            repeats.answer_before(caller, error)
            raise
        return sighted

    async def _continue(self, call: Call, request: requests.SendMessage, sent: a2a_tasks.Sent) -> Sighted:
        message = request.message
        sighted = a2a_tasks.get_task(call.caller, message.task_id or "")
        if message.context_id and message.context_id != sighted.shown["contextId"]:
            raise invalid(
                "The contextId is not that of the task.", "message.contextId", "the task belongs to another context"
            )
        if sighted.task.closed and not call.caller.is_repeat:
            state = sighted.task.state.removeprefix("TASK_STATE_").lower()
            raise refused("UnsupportedOperationError", f"The task is {state} and takes no more messages.")
        return await a2a_tasks.continue_task(call.caller, sighted.task.task_id, sent)

    async def _create(self, call: Call, request: requests.SendMessage, sent: a2a_tasks.Sent, tenant: str) -> Sighted:
        caller = call.caller
        task = self._task(call, request, sent)
        queue = queue_id(tenant or self._default_queue)
        try:
            return await caller.reply(a2a_tasks.create_task(caller, queue, task, sent))
        except Refused as error:
            if error.code != "queue_not_found":
                raise
            if tenant:
                raise invalid(
                    "The tenant names no queue.", "tenant", f"there is no queue {queue} in this workspace"
                ) from None
        # The default queue is created for the first message that needs it.
        try:
            await call.beside.settled(queues.create_queue(call.beside, NewQueue(name="A2A", id=queue)))
        except Refused as error:
            if error.code != "queue_exists":
                raise
        return await caller.reply(a2a_tasks.create_task(caller, queue, task, sent))

    async def _settled(self, call: Call, sighted: Sighted) -> Sighted:
        """Wait until the task ends or needs its client; return it as it is if the server stops first."""
        if sighted.task.closed or sighted.task.interrupted:
            return sighted
        async for told in a2a_tasks.follow_task(call.caller, sighted):
            if told.task.closed or told.task.interrupted:
                break
        return a2a_tasks.get_task(call.caller, sighted.task.task_id)

    # Tasks.

    async def get_task(self, call: Call, request: requests.GetTask) -> Json:
        """Return one task."""
        _check_history(request.history_length)
        return shown_task(call, a2a_tasks.get_task(call.caller, request.id), request.history_length)

    async def list_tasks(self, call: Call, request: requests.ListTasks) -> Json:
        """List tasks of the workspace, newest status first."""
        _check_history(request.history_length)
        size = _PAGE if request.page_size is None else request.page_size
        if not 1 <= size <= requests.MAX_PAGE:
            raise invalid("A page has 1 to 100 tasks.", "pageSize", "1 to 100")
        token = request.page_token or ""
        if token and not (token.isascii() and token.isdecimal() and len(token) <= 15):
            raise invalid("A page token comes from an earlier page.", "pageToken", "not a token")
        context = request.context_id and messages.ledger_context(request.context_id, "")
        wanted = Wanted(context or "", _state(request.status), _time(request.status_timestamp_after))
        found, following, total = await a2a_tasks.list_tasks(call.caller, wanted, int(token or 0), size)
        tasks = [shown_task(call, sighted, request.history_length) for sighted in found]
        if not request.include_artifacts:
            tasks = [{name: value for name, value in task.items() if name != "artifacts"} for task in tasks]
        return {
            "tasks": tasks,
            "nextPageToken": str(following) if following else "",
            "pageSize": size,
            "totalSize": total,
        }

    async def cancel_task(self, call: Call, request: requests.NamedTask) -> Json:
        """Cancel a task that has not ended."""
        caller = call.caller
        if call.idempotency_key:
            body = _encode(request.metadata) if request.metadata else b"a2a"
            caller.identify(a2a_tasks.cancel_task.operation, call.idempotency_key, request.id.encode(), body)
        try:
            _extend(call, request.metadata, "metadata")
            return shown_task(call, await caller.reply(a2a_tasks.cancel_task(caller, request.id)), None)
        except RedKeyError as error:
            raise translated(error, cancels=True) from None

    async def subscribe(self, call: Call, request: requests.NamedTask) -> AsyncIterator[Event]:
        """Yield the task as it is now, then every update once, in order, until the task ends.

        With the event id that a client received last, start from the task as it was then.
        """
        sighted, skipped = self._resumed(call, request.id)
        if sighted.task.closed:
            raise refused("UnsupportedOperationError", "The task has ended: there is nothing to follow.")
        yield first_event(call, sighted, skipped, None)
        async for told in a2a_tasks.follow_task(call.caller, sighted, skipped):
            yield shown_event(call, told)

    def _resumed(self, call: Call, task_id: str) -> tuple[Sighted, int]:
        """Return the task as the client last saw it, and how many objects of the next record it already has."""
        sequence, skipped = _position(call)
        if not sequence:
            return a2a_tasks.get_task(call.caller, task_id), 0
        return a2a_tasks.resume_task(call.caller, task_id, sequence, skipped), skipped


def _position(call: Call) -> tuple[int, int]:
    """Return the record of the last event id, and how many of its objects came, if not all; zeros without an id."""
    if not call.last_event_id:
        return 0, 0
    found = _POSITION.fullmatch(call.last_event_id)
    if found is None:
        raise invalid("The last event id cannot be read.", "Last-Event-ID", "the id of an event of this stream")
    sequence, skipped = int(found[1]), int(found[2] or 0)
    check_reached(call.caller, sequence)
    return sequence, skipped


def _extend(call: Call, metadata: dict[str, Any] | None, place: str) -> None:
    """Give the request's own record the data that came for it."""
    extensions = messages.wanted_extensions(metadata, place)
    if extensions:
        call.caller.extensions = call.caller.extended(extensions)


def _check_history(length: int | None) -> None:
    if length is not None and length < 0:
        raise invalid("A history has 0 or more messages.", "historyLength", "negative")


def _state(status: str | None) -> str:
    if not status or status == "TASK_STATE_UNSPECIFIED":
        return ""
    if status not in projection().states:
        raise invalid("There is no such task state.", "status", "not a state of A2A")
    return status


def _time(text: str | None) -> int:
    if not text:
        return 0
    if not _TIME.fullmatch(text):
        raise invalid("The time cannot be read.", "statusTimestampAfter", "a time such as 2026-01-31T12:00:00Z")
    try:
        return parse_time(text)
    except ValueError:
        raise invalid("The time cannot be read.", "statusTimestampAfter", "no calendar has this time") from None
