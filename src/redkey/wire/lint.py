"""The linter: rules of cards and briefs that no schema can express, each with a stable code.

It reads structs, so a document has passed its schema before it is linted. An error breaks a rule of the protocol; a
warning is advice. `prose` says how words and sentences are counted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from redkey.errors import Finding, WireRefused
from redkey.wire import prose
from redkey.wire.card import AgentCard, role_name
from redkey.wire.legacy import Brief, Complete, LegacyWire
from redkey.wire.schema import compile_schema

REGISTRY_SCHEMA = "definitions/cards/registry.schema.json"

CONTEXT_WORDS = 200
SUMMARY_WORDS = 150
STYLE_SENTENCES = 3
VOICE_SENTENCES = 2
FEWEST_CONSTRAINTS = 3
DEPARTMENTS = ("dev", "ops", "marketing", "sales", "platform")
# These need no registration: a human always exists, and `exec` is how a card names one.
ALWAYS_THERE = frozenset({"exec", "human"})


class Rule(NamedTuple):
    """The severity of breaking a rule, and the sentence that says what to do."""

    severity: Literal["error", "warning"]
    sentence: str


RULES: dict[str, Rule] = {
    "goal_missing": Rule("error", "the goal has no sentence; write one that is true when the task is done"),
    "goal_sentences": Rule("error", "the goal is one sentence; this has {count}"),
    "goal_imperative": Rule(
        "warning", "the goal is a command; say what is true at the end: “X is built”, not “Build X”"
    ),
    "context_words": Rule("error", "the context has at most {most} words; this has {count}"),
    "criteria_missing": Rule("warning", "no acceptance criteria; without them it is unclear when the task is done"),
    "criterion_sentences": Rule("warning", "a criterion is one pass-or-fail sentence; this has {count}"),
    "summary_words": Rule("error", "the summary has at most {most} words; this has {count}"),
    "scope_sentences": Rule("error", "the scope is one sentence; this has {count}"),
    "constraint_form": Rule("error", "a constraint begins with “I never ”: prohibitions work better than advice"),
    "constraints_few": Rule("warning", "a card has at least {least} constraints; this has {count}"),
    "escalation_missing": Rule("warning", "no escalation rules: the agent does not know whom to ask"),
    "style_sentences": Rule("error", "the working style has one to {most} sentences; this has {count}"),
    "voice_sentences": Rule("error", "the voice is described in one or two sentences; this has {count}"),
    "voice_examples": Rule("error", "a voice has one example; this has {count}"),
    "department_unusual": Rule("warning", "{name} is not one of the usual departments: {known}"),
    "reports_to_unknown": Rule("warning", "no agent {name} is registered, and it is not human{hint}"),
    "route_unknown": Rule("error", "no role or agent {name} is registered{hint}"),
    "output_type_unknown": Rule("error", "no output contract {name} is registered{hint}"),
}


class Registry(msgspec.Struct, frozen=True):
    """The agents, roles and output contracts that exist. Roles may be spelled `ba`, `role_ba` or `roles.ba`."""

    agents: frozenset[str]
    roles: frozenset[str]
    output_types: frozenset[str]

    def has_route(self, name: str) -> bool:
        """Return whether a card may escalate to this name."""
        role = role_name(name)
        return role in ALWAYS_THERE or name in self.agents or role in {role_name(known) for known in self.roles}


def read_registry(value: Any) -> Registry:
    """Read the registry in a decoded JSON value; raise WireRefused with every finding if it is not one."""
    findings = compile_schema(REGISTRY_SCHEMA).findings(value)
    if findings:
        raise WireRefused(findings)
    return msgspec.convert(value, Registry)


def lint_wire(wire: LegacyWire) -> list[Finding]:
    """List the rules that a brief or a complete breaks; other messages have no rules of prose."""
    if isinstance(wire.payload, Brief):
        return list(_lint_brief(wire.payload))
    if isinstance(wire.payload, Complete):
        return list(_too_many_words("summary_words", "/payload/summary", wire.payload.summary, SUMMARY_WORDS))
    return []


def lint_card(card: AgentCard, registry: Registry | None = None) -> list[Finding]:
    """List the rules that a card breaks; names are looked up only with a registry."""
    findings = [*_lint_prose(card), *_lint_constraints(card)]
    if card.identity.department not in DEPARTMENTS:
        name, known = repr(card.identity.department), ", ".join(DEPARTMENTS)
        findings.append(_broken("department_unusual", "/identity/department", name=name, known=known))
    if not card.escalation_rules:
        findings.append(_broken("escalation_missing", "/escalation_rules"))
    if registry is not None:
        findings.extend(_lint_names(card, registry))
    return findings


def _lint_brief(brief: Brief) -> Iterator[Finding]:
    count = prose.sentences(brief.goal)
    if count == 0:
        yield _broken("goal_missing", "/payload/goal")
    if count > 1:
        yield _broken("goal_sentences", "/payload/goal", count=count)
    if prose.commands(brief.goal):
        yield _broken("goal_imperative", "/payload/goal")
    yield from _too_many_words("context_words", "/payload/context", brief.context or "", CONTEXT_WORDS)
    if not brief.acceptance_criteria:
        yield _broken("criteria_missing", "/payload/acceptance_criteria")
    for index, criterion in enumerate(brief.acceptance_criteria):
        if (count := prose.sentences(criterion)) > 1:
            yield _broken("criterion_sentences", f"/payload/acceptance_criteria/{index}", count=count)


def _lint_prose(card: AgentCard) -> Iterator[Finding]:
    if (count := prose.sentences(card.scope)) != 1:
        yield _broken("scope_sentences", "/scope", count=count)
    if not 1 <= (count := prose.sentences(card.working_style)) <= STYLE_SENTENCES:
        yield _broken("style_sentences", "/working_style", count=count, most=STYLE_SENTENCES)
    if not 1 <= (count := prose.sentences(card.voice.description)) <= VOICE_SENTENCES:
        yield _broken("voice_sentences", "/voice/description", count=count)
    if (count := sum(_examples(example) for example in card.voice.examples)) > 1:
        yield _broken("voice_examples", "/voice/example", count=count)


def _examples(text: str) -> int:
    """Count the examples in one string: parts between blank lines, or the items of a list."""
    items = re.findall(r"^[ \t]*(?:[-*•]|[0-9]+[.)])[ \t]+\S", text, re.MULTILINE)
    return max(1, len(items), sum(bool(part.strip()) for part in re.split(r"\n[ \t\r]*\n", text)))


def _lint_constraints(card: AgentCard) -> Iterator[Finding]:
    for index, constraint in enumerate(card.constraints):
        if not re.match(r"I never \S", constraint):
            yield _broken("constraint_form", f"/constraints/{index}")
    if len(card.constraints) < FEWEST_CONSTRAINTS:
        yield _broken("constraints_few", "/constraints", count=len(card.constraints), least=FEWEST_CONSTRAINTS)


def _lint_names(card: AgentCard, registry: Registry) -> Iterator[Finding]:
    if card.identity.reports_to != "human" and card.identity.reports_to not in registry.agents:
        yield _unknown("reports_to_unknown", "/identity/reports_to", card.identity.reports_to, registry.agents)
    yield from lint_routes(card, registry)
    yield from lint_output_types(card, registry.output_types)


def lint_output_types(card: AgentCard, known: Collection[str]) -> Iterator[Finding]:
    """List the output contracts in a card that do not exist."""
    for index, name in enumerate(card.output_types):
        if name not in known:
            yield _unknown("output_type_unknown", f"/output_types/{index}", name, known)


def lint_routes(card: AgentCard, registry: Registry) -> Iterator[Finding]:
    """List the agents and roles in a card's routes that do not exist."""
    for index, rule in enumerate(card.escalation_rules):
        if not registry.has_route(rule.route_to):
            routes = registry.agents | registry.roles | ALWAYS_THERE
            yield _unknown("route_unknown", f"/escalation_rules/{index}/route_to", rule.route_to, routes)


def _too_many_words(code: str, pointer: str, text: str, most: int) -> Iterator[Finding]:
    if (count := prose.words(text)) > most:
        yield _broken(code, pointer, count=count, most=most)


def _unknown(code: str, pointer: str, name: str, known: Iterable[str]) -> Finding:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return _broken(code, pointer, name=repr(name), hint=f"; did you mean {near[0]!r}?" if near else "")


def _broken(code: str, pointer: str, **details: object) -> Finding:
    rule = RULES[code]
    return Finding(code, pointer, rule.sentence.format(**details), rule.severity)
