"""Events of the ledger: one by one, by what they are about, by query, and live."""

from __future__ import annotations

import re

import msgspec

from redkey.commands.decision import invalid, not_found
from redkey.errors import Finding
from redkey.readmodel.events import show
from redkey.services.caller import Caller
from redkey.services.following import Following, follow
from redkey.services.queries import Question, query
from redkey.services.subscriptions import Filter
from redkey.services.use_case import use_case
from redkey.services.use_cases.pages import sequence_after
from redkey.shapes import events
from redkey.shapes.events import Event, EventQuery, LedgerQuery, StreamQuery
from redkey.shapes.fields import Page
from redkey.wire.catalogue import catalogue
from redkey.wire.envelope import wire_of
from redkey.wire.ids import wire_id_of
from redkey.wire.times import parse_time

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)?", re.ASCII)


@use_case(events.QUERY_LEDGER)
async def query_ledger(caller: Caller, asked: LedgerQuery) -> Page[Event]:
    """List events by type, subject and time. A page may be shorter than its limit and still have a next."""
    question = Question(
        task_id=asked.task_id,
        claim_id=asked.claim_id,
        agent_id=asked.agent_id,
        workflow_id=asked.workflow_id,
        queue_id=queue_name(asked.queue_id),
        since=_time(asked.from_, "from"),
        until=_time(asked.to, "to"),
    )
    return await event_page(caller, question, asked)


@use_case(events.GET_EVENT)
def get_event(caller: Caller, event_id: str) -> Event:
    """Show one event."""
    record = caller.means.store.find(caller.topic, wire_id_of(event_id)) if event_id.startswith("evt_") else None
    if record is None:
        raise not_found("event")
    return show(wire_of(record.wire), record.sequence, record.timestamp)


@use_case(events.TASK_EVENTS)
async def task_events(caller: Caller, task_id: str, asked: EventQuery) -> Page[Event]:
    """List what happened to a task, with the attempts to claim it."""
    if caller.means.store.row(caller.topic, "task", task_id) is None:
        raise not_found("task")
    return await event_page(caller, Question(task_id=task_id), asked)


@use_case(events.CLAIM_EVENTS)
async def claim_events(caller: Caller, claim_id: str, asked: EventQuery) -> Page[Event]:
    """List what happened to a claim."""
    if not claim_id.startswith("clm_") or not caller.means.store.events(caller.topic, claim_id, limit=1):
        raise not_found("claim")
    return await event_page(caller, Question(claim_id=claim_id), asked)


@use_case(events.AGENT_EVENTS)
async def agent_events(caller: Caller, agent_id: str, asked: EventQuery) -> Page[Event]:
    """List what an agent did and what happened to it."""
    _check_agent(caller, agent_id)
    return await event_page(caller, Question(agent_id=agent_id), asked)


@use_case(events.AGENT_EVENTS)
def follow_agent(caller: Caller, agent_id: str, asked: EventQuery, after: int | None) -> Following:
    """Follow what an agent does and what happens to it: after a place, else after the query's cursor."""
    _check_agent(caller, agent_id)
    return follow_page(caller, Filter(agent_id=agent_id), asked, after)


@use_case(events.WORKFLOW_EVENTS)
async def workflow_events(caller: Caller, workflow_id: str, asked: EventQuery) -> Page[Event]:
    """List what happened in a run."""
    _check_workflow(caller, workflow_id)
    return await event_page(caller, Question(workflow_id=workflow_id), asked)


@use_case(events.WORKFLOW_EVENTS)
def follow_workflow(caller: Caller, workflow_id: str, asked: EventQuery, after: int | None) -> Following:
    """Follow what happens in a run: after a place, else after the query's cursor."""
    _check_workflow(caller, workflow_id)
    return follow_page(caller, Filter(workflow_id=workflow_id), asked, after)


@use_case(events.STREAM)
def stream(caller: Caller, asked: StreamQuery) -> Following:
    """Follow the events of the workspace."""
    wanted = Filter(
        types=event_types(asked.type, "type") | event_types(asked.types, "types"),
        agent_id=asked.agent_id,
        workflow_id=asked.workflow_id,
        queue_id=queue_name(asked.queue_id),
    )
    return follow(caller, wanted, asked.after)


async def event_page(caller: Caller, question: Question, asked: EventQuery) -> Page[Event]:
    """Return the page of events that a query asks for, of the types that it names."""
    store, cost = caller.means.store, caller.means.config.limits.query_records
    after = sequence_after(asked) if asked.after else None
    types = event_types(asked.type, "type")
    ordered = msgspec.structs.replace(question, types=types, newest_first=asked.order == "desc")
    found = await caller.in_thread(lambda: query(store, caller.topic, ordered, after, asked.limit, cost))
    return Page(tuple(found.events), None if found.next is None else str(found.next))


def follow_page(caller: Caller, wanted: Filter, asked: EventQuery, after: int | None) -> Following:
    """Follow what a page of events would list: after a place, else after the query's cursor, else from now on."""
    wanted = msgspec.structs.replace(wanted, types=event_types(asked.type, "type"))
    if after is None and asked.after:
        after = sequence_after(asked)
    return follow(caller, wanted, after)


def event_types(text: str, name: str) -> frozenset[str]:
    """Parse event types separated by commas; report every unknown one."""
    types = frozenset(part.strip() for part in text.split(",")) if text else frozenset()
    unknown = sorted(types - catalogue().keys())
    if unknown:
        raise invalid([Finding("unknown_type", f"/{name}", f"{one[:64]!r} is not an event type") for one in unknown])
    return types


def queue_name(text: str) -> str:
    """Return a queue's id as wires have it: `podcast`, `queues.podcast` and `queue_podcast` are the same."""
    if not text or text.startswith("queue_"):
        return text
    return "queue_" + text.removeprefix("queues.")


def _check_agent(caller: Caller, agent_id: str) -> None:
    if caller.means.store.row(caller.topic, "agent", agent_id) is None:
        raise not_found("agent")


def _check_workflow(caller: Caller, workflow_id: str) -> None:
    if caller.means.store.row(caller.topic, "workflow", workflow_id) is None:
        raise not_found("workflow")


def _time(text: str, name: str) -> int:
    """Return a UTC time, or the beginning of a day, in nanoseconds; 0 if none is given."""
    if not text:
        return 0
    try:
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        return parse_time(f"{text}T00:00:00Z" if len(text) == 10 else text)
    except (ValueError, OverflowError):
        text = "expected a time such as 2026-05-07T18:15:00Z, or a day such as 2026-05-07"
        raise invalid([Finding("parameter_invalid", f"/{name}", text)]) from None
