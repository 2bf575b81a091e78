"""Escalation: turn the output of an agent that recommends `escalate` into a block and messages. Pure.

The envelope has no fields for it, so the agent writes notes of the form `name: value`: `blocker_type`,
`escalation_rule` (the number under When to Escalate), `suggested_resolution`, `depends_on` (ids of tasks to wait for).
The task is always blocked, and the server notifies those who lift such blocks. The card's rule can add a message:
`inbox` a question, `exec.gate` a request for approval.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from redkey.runner.mail import Mail
from redkey.wire.card import AgentCard, EscalationRule, role_name
from redkey.wire.step import StepOutput

BlockerType = Literal["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail", "auth"]

_BLOCKERS: Final = frozenset({"spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "auth"})
_TASK = re.compile(r"task_[0-7][0-9A-HJKMNP-TV-Z]{25}")
_DEPENDENCIES: Final = 4
_FIELD = re.compile(r"([a-z_]+):[ \t]*(.+)", re.DOTALL)
# Roles that the server itself notifies of a block (seed 000); the rule would notify them twice.
_TOLD: Final = {
    "spec_gap": {"ba"},
    "tool_failure": {"infra"},
    "resource": {"infra"},
    "ambiguity": {"pm"},
}
_ALWAYS_TOLD: Final = frozenset({"supervisor", "human", "exec"})


class Escalation(msgspec.Struct, frozen=True):
    """A block, and the messages that go with it."""

    blocker_type: BlockerType
    reason: str
    suggested_resolution: str = ""
    depends_on: tuple[str, ...] = ()
    mail: tuple[Mail, ...] = ()


def fields(notes: Iterable[str]) -> dict[str, str]:
    """Read notes of the form `name: value`; the last one of each name counts."""
    return {found[1]: found[2].strip() for note in notes if (found := _FIELD.fullmatch(note.strip()))}


def escalate(output: StepOutput, card: AgentCard | None, task_id: str) -> Escalation:
    """Return the block and messages for an output that recommends to escalate."""
    said = fields(output.notes or ())
    rule = _rule(card, said.get("escalation_rule", ""))
    blocker = said.get("blocker_type", "")
    kind: BlockerType = blocker if blocker in _BLOCKERS else _default(rule)  # type: ignore[assignment]
    message = _message(rule, kind, output.summary, task_id) if rule is not None else None
    return Escalation(
        kind,
        output.summary,
        said.get("suggested_resolution", ""),
        tuple(_TASK.findall(said.get("depends_on", ""))[:_DEPENDENCIES]) if kind == "dependency" else (),
        (message,) if message is not None else (),
    )


def _rule(card: AgentCard | None, number: str) -> EscalationRule | None:
    """Return the rule with this number; None if the agent names no rule, or an unknown one."""
    if card is None or not number.isascii() or not number.isdecimal() or len(number) > 3:
        return None
    return card.escalation_rules[int(number) - 1] if 0 < int(number) <= len(card.escalation_rules) else None


def _default(rule: EscalationRule | None) -> BlockerType:
    """Return the blocker type if the agent names none: `spec_gap` for rules to the analysts, else `ambiguity`."""
    return "spec_gap" if rule is not None and role_name(rule.route_to) == "ba" else "ambiguity"


def _message(rule: EscalationRule, kind: str, reason: str, task_id: str) -> Mail | None:
    to, subject = rule.route_to, f"{rule.trigger[:190]}"
    to = "human" if to == "exec" else to
    if rule.via == "exec.gate":
        return Mail(to, subject, reason[:4000], "exec.gate", 1, True, task_id)
    if rule.via == "inbox":
        return Mail(to, subject, reason[:4000], "question", 2, True, task_id)
    if role_name(rule.route_to) in _TOLD.get(kind, set()) | _ALWAYS_TOLD:
        return None
    return Mail(to, subject, reason[:4000], "task.blocked", 1, True, task_id)
