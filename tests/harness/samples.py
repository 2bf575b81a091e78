"""The setup of many runner tests: the reference card and a brief for it."""

from __future__ import annotations

from typing import Any

from redkey.client import Assignment
from redkey.runner.brief import brief_of
from redkey.wire import files
from redkey.wire.card import AgentCard, read_card
from redkey.wire.legacy import Brief

QUINN: AgentCard = read_card(files.load("definitions/cards/quinn.json"))
TASK_ID = "0.0.4815162"


def brief_wire(**payload: Any) -> dict[str, Any]:
    """A whole Brief Wire for Quinn; `payload` replaces fields."""
    return _wire(
        {
            "goal": "The login page refuses expired sessions.",
            "context": "Sessions are kept for 30 days today.\nThe middleware reads them from Storage.",
            "constraints": ["No new dependency"],
            "acceptance_criteria": ["An expired session answers 401", "The tests pass"],
            "output_contract": {
                "type": "pr",
                "schema_ref": "code_commit",
                "output_ref_required": True,
                "min_length": 0,
                "evaluate": "Does the change refuse expired sessions?",
            },
            "escalation_triggers": ["The session format is not documented"],
            "env": {"client_id": "bezeliq", "task_id": TASK_ID, "repo_url": "https://example.com/login.git"},
            **payload,
        }
    )


def _wire(payload: dict[str, Any]) -> dict[str, Any]:
    return {"wire": "1.0", "type": "brief", "sender": "system", "ts": "2026-04-28T00:00:00Z", "payload": payload}


def quinns_brief(**payload: Any) -> Brief:
    return brief_of(assignment(task_id=TASK_ID, brief=brief_wire(**payload)), "ws_test")


def assignment(**more: Any) -> Assignment:
    """An assignment with defaults for everything that is not passed."""
    plain = {
        "task_id": "task_1",
        "queue_id": "queue_q",
        "attempt": 1,
        "context_id": "task:task_1",
        "required_roles": (),
        "required_capabilities": (),
        "priority": "normal",
    }
    return Assignment(**{**plain, **more})


def brief_asking(**contract: Any) -> dict[str, Any]:
    """A small Brief Wire with an output contract."""
    return _wire(
        {
            "goal": "It is done.",
            "constraints": [],
            "acceptance_criteria": ["It is."],
            "output_contract": {"output_ref_required": False, "min_length": 0, **contract},
            "escalation_triggers": [],
            "env": {"client_id": "test", "task_id": "0.0.1"},
        }
    )
