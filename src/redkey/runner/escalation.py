"""Escalation: what an agent that recommends `escalate` says is in its way, and whom its card's rule sends it to. Pure.

The envelope has no fields for it, so notes carry them, one `name: value` each: `blocker_type`, `escalation_rule` (the
number under When to Escalate), `suggested_resolution`, `depends_on` (ids of tasks to wait for). The task is blocked in
any case, and the server tells those who lift such blocks. A rule adds its own way: `inbox` a question, `exec.gate` the
request for an approval.
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
# Roles that the server tells of a block by itself (seed 000); a copy of the rule's would be a second one.
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
    """What notes say as `name: value`, the last of each name."""
    return {found[1]: found[2].strip() for note in notes if (found := _FIELD.fullmatch(note.strip()))}


def escalate(output: StepOutput, card: AgentCard | None, task_id: str) -> Escalation:
    """What follows from an output that recommends to escalate."""
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
    """The rule with a number; an agent that names none, or one that is not there, goes the way of its block alone."""
    if card is None or not number.isascii() or not number.isdecimal() or len(number) > 3:
        return None
    return card.escalation_rules[int(number) - 1] if 0 < int(number) <= len(card.escalation_rules) else None


def _default(rule: EscalationRule | None) -> BlockerType:
    """An agent that does not say what blocks it: what goes to the analysts is a gap, the rest needs an answer."""
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
