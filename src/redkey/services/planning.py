"""From a valid plan to the command that starts it: its structure, pinned; its text, as a document; the roles it
creates.

Everything that starts plans (the API, a simulation) uses this module, so that the same plan starts the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import msgspec

from redkey.commands.registry import CreateRole
from redkey.commands.workflows import StartWorkflow
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.plans.model import Plan, read_plan
from redkey.plans.structure import to_structure, write_structure
from redkey.wire.events import Ref

Nonce = Callable[[], bytes]


class Prepared(msgspec.Struct, frozen=True):
    """A plan ready to be started or published: what wires name, and the content they name."""

    structure: dict[str, Any]
    structure_ref: Ref
    content_ref: Ref
    contents: tuple[Content, ...]


def prepare(plan: dict[str, Any], nonce: Nonce, given: dict[str, Any] | None = None) -> Prepared:
    """Return the structure and the document of a valid plan; `given` is the input of one run of it."""
    structure = write_structure(to_structure(read_plan(plan)))
    pinned = content.structure(structure)
    document = content.document({"plan": plan} | ({"input": given} if given else {}), nonce())
    return Prepared(structure, content.ref(pinned), content.ref(document), (pinned, document))


def missing_roles(
    plan: Plan, known: Container[str], nonce: Nonce
) -> tuple[tuple[CreateRole, ...], tuple[Content, ...]]:
    """Return the roles of a plan that a workspace does not have, as commands, with their documents."""
    roles: list[CreateRole] = []
    documents: list[Content] = []
    for role_id, role in plan.roles_by_id().items():
        if role_id not in known:
            named = {"name": role.name or role_id.removeprefix("role_"), "description": role.description}
            document = content.document({key: text for key, text in named.items() if text}, nonce())
            roles.append(CreateRole(role_id, content.ref(document), role.capabilities))
            documents.append(document)
    return tuple(roles), tuple(documents)


def start_command(
    prepared: Prepared,
    workflow_id: str,
    queue_id: str,
    roles: tuple[CreateRole, ...] = (),
    *,
    definition_id: str = "",
    version: int = 0,
    phase_id: str = "",
) -> StartWorkflow:
    """Return the command that starts a prepared plan."""
    return StartWorkflow(
        workflow_id=workflow_id,
        queue_id=queue_id,
        structure=prepared.structure,
        structure_ref=prepared.structure_ref,
        content_ref=prepared.content_ref,
        roles=roles,
        definition_id=definition_id,
        version=version,
        phase_id=phase_id,
    )
