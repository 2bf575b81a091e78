"""A new task: its body, which of it is text, which of it reducers decide by, and the command that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from redkey.commands.decision import invalid, wrong
from redkey.commands.tasks import CreateTask
from redkey.errors import Finding, WireRefused
from redkey.ledger.ports import Content
from redkey.plans.structure import GatePolicy
from redkey.reducers.retrying import RetryDelay, retry_delay
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_cases.roles import capability_slugs
from redkey.services.use_cases.texts import keep_then
from redkey.shapes.fields import set_fields
from redkey.shapes.policies import RetryPolicyPatch
from redkey.shapes.tasks import Advice, ApprovalGate, CreatedTask, NewTask, Retry
from redkey.wire.events import Ref, TaskCreated
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.legacy import read_wire_1_0
from redkey.wire.lint import lint_wire
from redkey.wire.names import ROLE_ID, queue_id, role_id
from redkey.wire.rules import ENTRIES_LIMIT

T = TypeVar("T")
_TEXT = ("title", "description", "input", "brief", "completion_criteria", "depends_on")


def create(
    caller: Caller, queue: str, body: NewTask, *, part: str = "", under: str = ""
) -> Pending[CreatedTask] | Coroutine[Any, Any, Pending[CreatedTask]]:
    """Record a new task; `part` and `under` tell the tasks of a batch apart."""
    warnings = _check_brief(body.brief, under)
    return record(caller, queue, body, lambda outcome, _: _created(outcome, warnings), part=part, under=under)


def record(
    caller: Caller,
    queue: str,
    body: NewTask,
    reply: Callable[[Outcome, Place], T],
    *,
    part: str = "",
    under: str = "",
    beside: Mapping[str, Any] | None = None,
    attached: tuple[Content, ...] = (),
) -> Pending[T] | Coroutine[Any, Any, Pending[T]]:
    """Record a new task; `beside` is kept with its text, and `attached` is content that its input names."""
    named = queue_id(queue)
    if body.queue_id is not None and queue_id(body.queue_id) != named:
        raise wrong("queue_mismatch", f"{under}/queueId", "the body names another queue than the path")
    _check_names(caller, body, under)

    def then(ref: Ref, text: Content) -> Pending[T]:
        command, pinned = _command(caller, body, named, ref, under)
        # The interface has checked those of a single task.
        extensions = caller.extended(body.extensions, under) if part else None
        return Pending(command, reply, (text, *pinned, *attached), part=part, extensions=extensions)

    return keep_then(caller, set_fields(body, *_TEXT) | dict(beside or {}), then, queue_id=named, under=under)


# Where a new task may be at once, depending on its consequences.
_STATES = {"task.available": "available", "task.failed": "failed"}


def _created(outcome: Outcome, warnings: tuple[Advice, ...]) -> CreatedTask:
    """Return the reply of a new task: its state after all its immediate consequences were recorded."""
    record = outcome.records[0]
    found = [_STATES[one.event.type] for one in outcome.records if one.event.type in _STATES]
    return CreatedTask(
        task_id=parse_stream(record.event.stream.stream_id).subject,
        queue_id=outcome.payload(TaskCreated).queue_id,
        status=found[0] if found else "created",
        event_id=event_id(record.event.wire_id),
        warnings=warnings,
    )


def _check_brief(brief: dict[str, Any] | None, under: str) -> tuple[Advice, ...]:
    """Refuse a brief that is not valid or breaks a rule of the protocol; return warnings for the rest."""
    if brief is None:
        return ()
    here = f"{under}/brief"
    try:
        wire = read_wire_1_0(brief)
    except WireRefused as refused:
        raise _at(here, list(refused.findings())) from refused
    if wire.type != "brief":
        raise wrong("brief_type", f"{here}/type", "a task's brief is a wire of type brief")
    findings = lint_wire(wire)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise _at(here, errors)
    return tuple(Advice(code=one.code, pointer=here + one.pointer, message=one.message) for one in findings)


def _at(here: str, findings: list[Finding]) -> Exception:
    return invalid([Finding(one.code, here + one.pointer, one.message) for one in findings])


def _check_names(caller: Caller, body: NewTask, under: str) -> None:
    """Check that everything a task names is in this workspace; a name of another workspace counts as unknown."""
    store, topic = caller.means.store, caller.topic
    for index, name in enumerate(body.required_roles):
        if not ROLE_ID.fullmatch(role_id(name)):
            raise wrong("unknown_role", f"{under}/requiredRoles/{index}", "there is no such role; create it first")
    named = [(f"/referenceTaskIds/{index}", key) for index, key in enumerate(body.reference_task_ids)]
    if body.parent_task_id is not None:
        named.append(("/parentTaskId", body.parent_task_id))
    for pointer, task_id in named:
        if store.row(topic, "task", task_id) is None:
            raise wrong("unknown_task", under + pointer, "there is no such task in this workspace")
    if body.workflow_id is not None and store.row(topic, "workflow", body.workflow_id) is None:
        raise wrong("unknown_workflow", f"{under}/workflowId", "there is no such workflow in this workspace")
    if body.workflow_id is not None and body.context_id not in ("", f"workflow:{body.workflow_id}"):
        text = "a task of a workflow has its context; leave contextId out"
        raise wrong("context_mismatch", f"{under}/contextId", text)


def _command(caller: Caller, body: NewTask, queue: str, text: Ref, under: str) -> tuple[CreateTask, list[Content]]:
    """Return the command, and the structure that holds what does not fit on a wire."""
    roles = tuple(sorted(set(map(role_id, body.required_roles))))
    able: tuple[str, ...] = ()
    if body.required_capabilities:
        able = tuple(sorted(capability_slugs(body.required_capabilities, f"{under}/requiredCapabilities")))
    references, has_parent = tuple(dict.fromkeys(body.reference_task_ids)), body.parent_task_id is not None
    command = CreateTask(
        task_id="task_" + caller.means.ids.ulid(),
        queue_id=queue,
        content_ref=text,
        priority=body.priority or "",
        context_id=body.context_id or (f"workflow:{body.workflow_id}" if body.workflow_id else ""),
        roles=roles,
        capabilities=able,
        waits_for=tuple(dict.fromkeys(body.depends_on)),
        outputs=tuple(dict.fromkeys(body.outputs)),
        lease_seconds=body.lease_seconds or 0,
        deadline_seconds=body.deadline_seconds or 0,
        max_attempts=(body.retry.max_attempts or 0) if body.retry is not None else 0,
        correlation_id=body.correlation_id,
        reference_task_ids=references,
        parent_task_id=body.parent_task_id or "",
        workflow_id=body.workflow_id or "",
    )
    policy = _policy(body)
    lists = (roles, able, command.waits_for, command.outputs, references)
    if not policy and sum(map(len, lists)) + has_parent <= ENTRIES_LIMIT:
        return command, []
    structure = {name: value for name, value in (_asked(command) | policy).items() if value}
    if len(references) + has_parent > ENTRIES_LIMIT:
        # More than fits on a wire.
        structure["references"] = list(references)
        command = msgspec.structs.replace(command, reference_task_ids=())
    ref, pinned = caller.structure(structure)
    return msgspec.structs.replace(command, structure=structure, structure_ref=ref), [pinned]


def _policy(body: NewTask) -> dict[str, Any]:
    """Return what no wire has a field for: what follows a failure, and who approves."""
    policy: dict[str, Any] = {}
    if body.retry is not None and body.retry.on_failure != "reopen":
        policy["on_failure"] = body.retry.on_failure
    if body.retry is not None and body.retry.delay_seconds is not None:
        policy["retry"] = {"delay_ms": 0, **msgspec.to_builtins(delay_of(body.retry))}
    gate = body.approval_gate
    if isinstance(gate, ApprovalGate):
        made = GatePolicy(tuple(map(_approver, gate.approvers)), gate.deadline_seconds or 0, gate.on_deadline)
        policy["gate"] = msgspec.to_builtins(made) or True
    elif gate:
        policy["gate"] = True
    return policy


def delay_of(stated: Retry | RetryPolicyPatch) -> RetryDelay:
    """Return the pause between attempts in the form of reducers."""
    return retry_delay(stated.delay_seconds or 0, stated.backoff, stated.jitter, stated.longest_delay_seconds)


def _approver(name: str) -> str:
    return role_id(name) if name.startswith(("role_", "roles.")) else name


def _asked(command: CreateTask) -> dict[str, Any]:
    return {
        "roles": list(command.roles),
        "capabilities": list(command.capabilities),
        "waits_for": list(command.waits_for),
        "outputs": list(command.outputs),
        "lease_seconds": command.lease_seconds,
        "deadline_seconds": command.deadline_seconds,
        "max_attempts": command.max_attempts,
    }
