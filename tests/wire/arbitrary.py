"""Hypothesis strategies: any JSON value of a strict decoder, documents with errors, and valid messages of Agent
Wire 1.0."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

LARGEST = 2**53 - 1

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST, LARGEST)
    | st.floats(-1e15, 1e15, allow_nan=False)
    | st.text(max_size=40)
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


# fmt: off
_KNOWN_FIELDS = (
    "wire", "type", "sender", "ts", "payload", "stream", "state", "stream_id", "stream_seq", "context_id",
    "correlation_id", "agent", "role", "task_id", "claim_id", "card_version", "voice", "context", "paths", "task",
    "params", "mode", "config", "result", "state_updates", "notes", "artifacts", "next_recommendation",
    "recommendation", "summary", "spec_path", "prior_decisions", "prior_context", "operation",
)
# fmt: on


@st.composite
def gone_wrong(draw: st.DrawFn, documents: list[Any]) -> Any:
    """One of the documents with a few parts replaced, removed or added."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 3))):
        part: Any = document
        while isinstance(part, dict | list) and part:
            key = draw(st.sampled_from(list(part) if isinstance(part, dict) else range(len(part))))
            if isinstance(part[key], dict | list) and part[key] and draw(st.booleans()):
                part = part[key]
                continue
            match draw(st.sampled_from(["replace", "remove", "add"])):
                case "replace":
                    part[key] = draw(json_values)
                case "remove":
                    del part[key]
                case "add" if isinstance(part, dict):
                    part[draw(st.text(max_size=12) | st.sampled_from(_KNOWN_FIELDS))] = draw(json_values)
                case "add":
                    part.append(draw(json_values))
            break
    return document


slugs = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,31}", fullmatch=True)
ulids = st.from_regex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True)
task_ids = st.from_regex(r"[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,10}", fullmatch=True) | ulids.map("task_{}".format)
senders = slugs | st.sampled_from(["system", "human", "runner"])
times = st.builds(
    lambda at, fraction, zone: at.isoformat(timespec="seconds") + fraction + zone,
    st.datetimes(),
    st.just("") | st.from_regex(r"\.[0-9]{1,9}", fullmatch=True),
    st.just("Z") | st.from_regex(r"[+-]([01][0-9]|2[0-3]):[0-5][0-9]", fullmatch=True),
)
texts = st.text(min_size=1, max_size=200)
lines = st.lists(texts, max_size=4)
counts = st.integers(1, 999)


def _with_optional(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    maybe_null = {name: strategy | st.none() for name, strategy in optional.items()}
    return st.fixed_dictionaries(required, optional=maybe_null)


_payloads = {
    "brief": _with_optional(
        {
            "goal": texts,
            "constraints": lines,
            "acceptance_criteria": lines,
            "output_contract": _with_optional(
                {
                    "type": st.sampled_from(["file", "json", "pr", "message", "report"]),
                    "output_ref_required": st.booleans(),
                    "min_length": st.integers(0, 1_000_000),
                },
                {"schema_ref": slugs, "evaluate": texts},
            ),
            "escalation_triggers": lines,
            "env": _with_optional(
                {"client_id": slugs, "task_id": task_ids},
                {
                    "project_id": slugs | st.from_regex(r"0\.0\.[0-9]{1,10}", fullmatch=True),
                    "repo_url": texts,
                    "worktree_path": texts,
                },
            ),
        },
        {"context": texts},
    ),
    "inbox": _with_optional(
        {
            "to_agent": senders,
            "priority": st.integers(1, 3),
            "message_type": st.sampled_from(
                ["task.feedback", "status.update", "task.blocked", "exec.gate", "question", "info"]
            ),
            "subject": texts,
            "body": st.text(max_size=200),
            "action_required": st.booleans(),
        },
        {"ref_task_id": task_ids},
    ),
    "complete": _with_optional(
        {
            "task_id": task_ids,
            "agent": slugs,
            "summary": texts,
            "cost_usd": st.integers(0, 1_000_000) | st.floats(0, 1_000_000),
            "duration_seconds": st.integers(0, 31_536_000) | st.floats(0, 31_536_000),
            "verification": st.fixed_dictionaries(
                {
                    "mechanical": st.sampled_from(["pass", "fail"]),
                    "semantic": st.sampled_from(["pass", "fail", "skipped"]),
                    "attempts": counts,
                }
            ),
        },
        {"output_ref": texts},
    ),
    "blocked": _with_optional(
        {
            "task_id": task_ids,
            "agent": slugs,
            "reason": texts,
            "blocker_type": st.sampled_from(
                ["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail"]
            ),
            "attempts": counts,
        },
        {"suggested_resolution": texts},
    ),
    "claim": st.fixed_dictionaries({"task_id": task_ids, "agent": slugs, "role": slugs}),
}

wires_1_0 = st.one_of(
    [
        st.fixed_dictionaries(
            {"wire": st.just("1.0"), "type": st.just(kind), "sender": senders, "ts": times, "payload": payload}
        )
        for kind, payload in _payloads.items()
    ]
)
