"""Lift Agent Wire 1.0 to 1.1: what each of its five messages means there. `lift` calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from redkey.errors import Finding, WireRefused
from redkey.wire import legacy, lifted
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import VERSION, catalogue
from redkey.wire.ids import task_stream
from redkey.wire.legacy import Blocked, Brief, Claim, Complete, Inbox, LegacyWire
from redkey.wire.lifted import NO_WORKSPACE, Content, Lifted, Log

# The name of the artifact that a 1.0 `output_ref` becomes, and of the output that a 1.0 brief requires.
OUTPUT_NAME = "output_ref"
# Additional wires of a message, which need an id of their own.
_SECOND_WIRES = frozenset({"artifact.ready", "task.available"})


def lift_legacy(value: dict[str, Any], log: Log) -> Lifted:
    """Lift a decoded 1.0 message to 1.1 wires."""
    lifting = _Lifting(legacy.read_wire_1_0(value), canonical(value), log)
    _LIFTS[lifting.message.type](lifting, lifting.message.payload)
    return Lifted(tuple(lifting.wires), tuple(lifting.content), tuple(lifting.lost), tuple(lifting.assumed))


class _Lifting:
    """Lifts one 1.0 message: collects its wires, content and notes."""

    def __init__(self, message: LegacyWire, data: bytes, log: Log) -> None:
        self.message, self.data, self.log = message, data, log
        self.wires: list[dict[str, Any]] = []
        self.content: list[Content] = []
        self.lost: list[Finding] = []
        self.assumed: list[Finding] = []

    def write(self, event: str, stream_id: str, context_id: str, payload: dict[str, Any]) -> None:
        """Add a wire; its id is derived from the bytes of the message, which may become two wires."""
        if stream_id not in self.log.places and event != "task.created":
            self.assume("/stream/stream_seq", "no earlier message of this stream was lifted; counting starts here")
        cause = self.data + b"\n" + event.encode() if event in _SECOND_WIRES else self.data
        self.log.places[stream_id] = self.log.places.get(stream_id, 0) + 1
        wire = {
            "wire": VERSION,
            "wire_id": lifted.hashed("wire", cause),
            "type": event,
            "sender": _sender(self.message.sender),
            "ts": legacy.utc(self.message.ts),
            "stream": {
                "stream_id": stream_id,
                "stream_seq": self.log.places[stream_id],
                "context_id": context_id,
            },
        }
        state = catalogue()[event].state
        self.wires.append(wire | ({"state": state} if state else {}) | {"payload": payload})

    def write_task(self, event: str, task_id: str, payload: dict[str, Any]) -> None:
        """Add a wire to the stream of the task's first attempt: 1.0 has no other."""
        context_id = self.log.contexts.get(task_id)
        if context_id is None:
            self.assume("/stream/context_id", "no brief of this task was lifted before; the task is its context")
            context_id = f"task:{task_id}"
        self.write(event, task_stream(task_id, 1), context_id, payload)

    def keep(self, document: dict[str, Any]) -> dict[str, Any]:
        """Store a document as content, and return its ref."""
        item = Content(canonical({key: part for key, part in document.items() if part is not None}))
        self.content.append(item)
        return item.ref

    def lose(self, pointer: str, message: str) -> None:
        self.lost.append(lifted.lost(pointer, message))

    def assume(self, pointer: str, message: str) -> None:
        self.assumed.append(lifted.assumed(pointer, message))

    def agent_id(self, slug: str, pointer: str = "/payload/agent") -> str:
        agent_id = lifted.agent_id(slug)
        if agent_id != slug:
            self.lose(pointer, f"the slug {slug!r} is not allowed in 1.1; the agent id is derived from it")
        return agent_id

    def holder(self, task_id: str, slug: str) -> dict[str, str]:
        """Return the agent and its claim on the task, as far as the log shows."""
        agent_id = self.agent_id(slug)
        turn = self.log.claims.get((task_id, agent_id), 0)
        if turn == 0 or self.message.type == "claim":
            self.assume("/payload/claim_id", "1.0 claims have no id; the id is derived from the task and the agent")
        return {"claim_id": lifted.claim_id(task_id, agent_id, max(turn, 1)), "agent_id": agent_id}


def _lift_brief(lifting: _Lifting, brief: Brief) -> None:
    env = brief.env
    if env.task_id is None:
        text = "a brief that is lifted names its task"
        raise WireRefused([Finding("schema_required", "/payload/env/task_id", text)])
    queue_id = lifted.named("queue_id", f"queue_{env.client_id}")
    context_id = f"project:{env.project_id}" if env.project_id else f"queue:{queue_id}"
    lifting.log.contexts[env.task_id] = context_id
    lifting.assume("/payload/queue_id", "1.0 has no queues; the tasks of each client form one queue")
    lifting.assume("/payload/priority", "1.0 tasks have no priority; normal is used")
    payload: dict[str, Any] = {
        "queue_id": queue_id,
        "priority": "normal",
        "content_ref": lifting.keep({"title": brief.goal, "brief": msgspec.json.decode(lifting.data)}),
    }
    if brief.output_contract.output_ref_required:
        payload["outputs"] = [OUTPUT_NAME]
    lifting.write_task("task.created", env.task_id, payload)
    # In 1.0 no task waits, and in 1.1 a claim needs an available task.
    lifting.assume("/type", "1.0 publishes a brief so that it can be claimed: the task is available at once")
    lifting.write_task("task.available", env.task_id, {})


def _lift_claim(lifting: _Lifting, claim: Claim) -> None:
    hold = (claim.task_id, lifted.agent_id(claim.agent))
    lifting.log.claims[hold] = lifting.log.claims.get(hold, 0) + 1
    payload = {**lifting.holder(claim.task_id, claim.agent), "role_id": lifted.role_id(claim.role)}
    lifting.write_task("task.claimed", claim.task_id, payload)


def _lift_blocked(lifting: _Lifting, blocked: Blocked) -> None:
    document = {"reason": blocked.reason, "suggested_resolution": blocked.suggested_resolution}
    payload = {
        **lifting.holder(blocked.task_id, blocked.agent),
        "blocker_type": blocked.blocker_type,
        "reason_ref": lifting.keep(document),
        "attempts": blocked.attempts,
    }
    lifting.write_task("task.blocked", blocked.task_id, payload)


def _lift_complete(lifting: _Lifting, complete: Complete) -> None:
    if complete.verification.mechanical == "fail":
        _lift_failed_check(lifting, complete)
        return
    holder = lifting.holder(complete.task_id, complete.agent)
    artifact_ids: list[str] = []
    if complete.output_ref is not None:
        artifact_ids.append(_lift_output(lifting, complete.task_id, holder["claim_id"], complete.output_ref))
    seconds = round(complete.duration_seconds)
    if seconds != complete.duration_seconds:
        lifting.lose(
            "/payload/duration_seconds", f"1.1 counts whole seconds: {complete.duration_seconds} becomes {seconds}"
        )
    payload = {
        **holder,
        "artifact_ids": artifact_ids,
        "output_ref": lifting.keep({"summary": complete.summary}),
        "cost_usd": complete.cost_usd,
        "duration_seconds": seconds,
        "verification": msgspec.to_builtins(complete.verification),
    }
    lifting.write_task("task.complete", complete.task_id, payload)


def _lift_output(lifting: _Lifting, task_id: str, claim_id: str, output_ref: str) -> str:
    """Add the artifact of a 1.0 `output_ref`, ready before the task is complete; return its id."""
    artifact_id = lifted.hashed("art", f"{task_id}\n{output_ref}".encode())
    ref = lifting.keep({"uri": output_ref})
    lifting.assume("/payload/sha256", "1.0 names an output without a hash; this is the hash of the document naming it")
    payload = {
        "claim_id": claim_id,
        "artifact_id": artifact_id,
        "name": OUTPUT_NAME,
        "version": 1,
        "content_ref": ref,
        **ref,
        "readiness": "final",
    }
    lifting.write_task("artifact.ready", task_id, payload)
    return artifact_id


def _lift_failed_check(lifting: _Lifting, complete: Complete) -> None:
    """Block a task that failed its mechanical check: in 1.1 it is not complete."""
    document = {
        "reason": complete.summary,
        "output_ref": complete.output_ref,
        "cost_usd": complete.cost_usd,
        "duration_seconds": complete.duration_seconds,
        "semantic": complete.verification.semantic,
    }
    for name in ("cost_usd", "duration_seconds", "verification/semantic", "output_ref"):
        if name != "output_ref" or complete.output_ref is not None:
            lifting.lose(f"/payload/{name}", "a blocked wire has no such field; the value is in the content")
    payload = {
        **lifting.holder(complete.task_id, complete.agent),
        "blocker_type": "verification_fail",
        "reason_ref": lifting.keep(document),
        "attempts": complete.verification.attempts,
    }
    lifting.write_task("task.blocked", complete.task_id, payload)


def _lift_inbox(lifting: _Lifting, inbox: Inbox) -> None:
    if inbox.to_agent == "human":
        to, stream_id = "human", f"workspace:{lifting.log.workspace_id}"
        if lifting.log.workspace_id == NO_WORKSPACE:
            lifting.assume(
                "/stream/stream_id", "1.0 has no workspaces; mail to a human goes to the stream of no real workspace"
            )
    else:
        to = stream_id = "agent:" + lifting.agent_id(inbox.to_agent, "/payload/to_agent")
    context_id = stream_id
    payload: dict[str, Any] = {
        "message_id": lifted.hashed("msg", lifting.data),
        "to": to,
        "priority": inbox.priority,
        "message_type": inbox.message_type,
        "body_ref": lifting.keep({"subject": inbox.subject, "body": inbox.body}),
        "action_required": inbox.action_required,
    }
    if inbox.ref_task_id is not None:
        payload["ref_task_id"] = inbox.ref_task_id
        context_id = lifting.log.contexts.get(inbox.ref_task_id, f"task:{inbox.ref_task_id}")
    lifting.write("inbox.sent", stream_id, context_id, payload)


_LIFTS: Mapping[str, Callable[[_Lifting, Any], None]] = {
    "brief": _lift_brief,
    "inbox": _lift_inbox,
    "complete": _lift_complete,
    "blocked": _lift_blocked,
    "claim": _lift_claim,
}


def _sender(name: str) -> str:
    return {"system": "system", "runner": "runner:runner", "human": "human:human"}.get(name, f"agent:{name}")
