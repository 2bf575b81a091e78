"""Workflow definitions: validated, drafted, changed, published. A published version never changes."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from redkey.commands.decision import not_found
from redkey.commands.workflows import PublishDefinition
from redkey.ledger.ports import Content
from redkey.ledger.record import iso_time
from redkey.plans.validation import Validation as Verdict
from redkey.readmodel.view import read_document
from redkey.reducers import entities
from redkey.services.answers import answer_erased
from redkey.services.caller import NO_CONTENT, Caller, Pending
from redkey.services.definitions import (
    StoredDraft,
    begin_version,
    change_draft,
    create_draft,
    definition_id_of,
    definition_ids,
    draft_plan,
    encoded,
    live_draft,
    merge_patch,
    read_definition,
    read_draft,
    read_version,
    versions,
)
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.planning import prepare
from redkey.services.use_case import use_case
from redkey.services.use_cases.plans import checked, plan_invalid, validation_view
from redkey.services.use_cases.texts import refuse_secrets_beside
from redkey.shapes import definitions
from redkey.shapes.definitions import (
    Definition,
    DefinitionQuery,
    DefinitionsQuery,
    DefinitionSummary,
    Draft,
    DraftChange,
    DraftPlan,
    NewDefinition,
    NewVersion,
    Plan,
    PlanBody,
    Published,
    PublishedPlan,
    Validation,
    Version,
)
from redkey.shapes.fields import Page
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.events import DefinitionPublished
from redkey.wire.ids import event_id

# How many published versions are listed with a definition, the last ones.
_VERSIONS_SHOWN = 100


@use_case(definitions.VALIDATE_DEFINITION)
async def validate_definition(caller: Caller, asked: PlanBody | object) -> Validation:
    """Check a plan without saving or starting it: the plan itself, or an object with it; any JSON gets a verdict."""
    plan: object = asked
    if isinstance(asked, PlanBody):
        plan = asked.plan
    elif isinstance(asked, dict) and "plan" in asked and not {"tasks", "roles"} & asked.keys():
        plan = asked["plan"]
    return validation_view(await checked(caller, plan))


# Drafts.


@use_case(definitions.CREATE_DEFINITION)
async def create_definition(caller: Caller, new: NewDefinition) -> Draft:
    """Save a plan as the draft of a new definition."""
    idem, body = caller.identity
    definition_id = definition_id_of(idem, caller.means.ids.ulid)
    await refuse_secrets_beside(caller, new.plan, under="/plan")
    plan = await caller.in_thread(lambda: encoded(new.plan))
    return await _shown(
        caller, await caller.act(lambda unit: create_draft(unit, caller.topic, definition_id, plan, body))
    )


@use_case(definitions.CHANGE_DEFINITION)
async def change_definition(caller: Caller, definition_id: str, change: DraftChange) -> Draft:
    """Change the draft; a published version never changes."""
    await refuse_secrets_beside(caller, change.plan, under="/plan")

    def merged() -> tuple[StoredDraft, msgspec.Raw]:
        before = live_draft(caller.means.store, caller.topic, definition_id, change.revision)
        return before, encoded(merge_patch(draft_plan(before), change.plan))

    # A plan may be large, so it is merged in a thread.
    before, plan = await caller.in_thread(merged)
    draft = await caller.act(partial(change_draft, topic=caller.topic, before=before, plan=plan))
    return await _shown(caller, draft)


@use_case(definitions.CREATE_VERSION)
async def create_version(caller: Caller, definition_id: str, new: NewVersion) -> Draft:
    """Begin the draft of the next version, from the given plan or from the last version's."""
    given = new.plan
    await refuse_secrets_beside(caller, given or {}, under="/plan")
    plan = await caller.in_thread(lambda: encoded(given)) if given is not None else None
    return await _shown(caller, await caller.act(lambda unit: begin_version(unit, caller.topic, definition_id, plan)))


async def _shown(caller: Caller, draft: StoredDraft) -> Draft:
    plan = await caller.beside(lambda: draft_plan(draft))
    return Draft(
        definition_id=draft.definition_id,
        version=draft.version,
        status="draft",
        name=_name(plan),
        revision=draft.revision,
        validation=validation_view(await checked(caller, plan)),
        updated_at=iso_time(draft.updated_at),
    )


# Reading.


@use_case(definitions.LIST_DEFINITIONS)
def list_definitions(caller: Caller, asked: DefinitionsQuery) -> Page[DefinitionSummary]:
    """List the definitions of the workspace, by id."""
    keys = definition_ids(caller.means.store, caller.topic, asked.after, asked.limit)
    found = (_summary(caller, key) for key in keys)
    items = tuple(one for one in found if asked.state in (None, one.state))
    return Page(items, keys[-1] if len(keys) == asked.limit else None)


def _summary(caller: Caller, definition_id: str) -> DefinitionSummary:
    draft, definition = _both(caller, definition_id)
    plan = _plan(caller, draft, definition, None)
    return DefinitionSummary(**_header(definition_id, draft, definition, plan))


@use_case(definitions.GET_DEFINITION)
async def get_definition(caller: Caller, definition_id: str, asked: DefinitionQuery) -> Definition:
    """Show one definition with its versions and a plan."""
    draft, definition = _both(caller, definition_id)
    if draft is None and definition is None:
        raise not_found("definition")
    plan = _plan(caller, draft, definition, asked.version)
    last = definition.version if definition is not None else 0
    shown = asked.version or (draft.version if draft is not None else last)
    published = list(versions(caller.means.store, caller.topic, definition_id))[-_VERSIONS_SHOWN:]
    text = _plan(caller, None, definition, last) if definition is not None else None
    return Definition(
        **_header(definition_id, draft, definition, plan),
        shown_version=shown,
        revision=draft.revision if draft is not None and shown == draft.version else None,
        published=PublishedPlan(version=last, plan=text) if definition is not None else None,
        draft=DraftPlan(version=draft.version, revision=draft.revision, plan=draft_plan(draft)) if draft else None,
        plan=plan,
        validation=validation_view(await checked(caller, plan)) if plan is not None else None,
        versions=tuple(_version(caller, one) for one in published),
    )


def _both(caller: Caller, definition_id: str) -> tuple[StoredDraft | None, entities.Definition | None]:
    store = caller.means.store
    return read_draft(store, caller.topic, definition_id), read_definition(store, caller.topic, definition_id)


def _header(
    definition_id: str, draft: StoredDraft | None, definition: entities.Definition | None, plan: Plan | None
) -> dict[str, Any]:
    return {
        "definition_id": definition_id,
        "name": _name(plan),
        "status": "published" if definition is not None else "draft",
        "version": definition.version if definition is not None else None,
        "draft_version": draft.version if draft is not None else None,
        "erased": plan is None,
    }


def _name(plan: Plan | None) -> str:
    name = (plan or {}).get("name", "")
    return name if isinstance(name, str) else ""


def _plan(
    caller: Caller, draft: StoredDraft | None, definition: entities.Definition | None, version: int | None
) -> Plan | None:
    """Return the plan of a version; without one, of the draft, else of the last version. None if it was erased."""
    store, topic = caller.means.store, caller.topic
    if draft is not None and version in (None, draft.version):
        return draft_plan(draft)
    found = None
    if definition is not None:
        found = read_version(store, topic, definition.definition_id, version or definition.version)
    if found is None:
        raise not_found("version")
    document = read_document(store, topic, found.content_sha256)
    return document["plan"] if document is not None else None


def _version(caller: Caller, version: entities.Version) -> Version:
    (record,) = caller.means.store.read(caller.topic, version.sequence - 1, 1)
    return Version(
        version=version.version,
        published_at=iso_time(version.published_at),
        published_by=version.published_by,
        event_id=event_id(wire_of(record.wire).wire_id),
    )


# Publishing.


@use_case(definitions.PUBLISH_DEFINITION)
async def publish_definition(caller: Caller, definition_id: str) -> Published:
    """Publish the draft: from now on it can be run, and never changes."""
    store, topic = caller.means.store, caller.topic
    definition = read_definition(store, topic, definition_id)
    if caller.is_repeat and definition is not None:
        # The draft is gone; the record of the first request names what was published.
        command = PublishDefinition(definition_id, definition.version, NO_CONTENT, NO_CONTENT)
        return await _published(caller, command)
    draft = live_draft(store, topic, definition_id, 0)
    plan = draft_plan(draft)
    found = await checked(caller, plan)
    if not found.valid:
        raise plan_invalid(found)
    prepared = await caller.in_thread(lambda: prepare(plan, caller.means.ids.nonce))
    command = PublishDefinition(
        definition_id, draft.version, prepared.structure_ref, prepared.content_ref, draft.revision
    )
    return await _published(caller, command, prepared.contents, found)


async def _published(
    caller: Caller, command: PublishDefinition, contents: tuple[Content, ...] = (), found: Verdict | None = None
) -> Published:
    """Publish, and return which version it is. `found` is the verdict on the plan; a repeated request validates it
    again.
    """

    def reply(outcome: Outcome, place: Place) -> tuple[AnyWire, DefinitionPublished, Plan]:
        event = outcome.records[0].event
        if type(event.payload) is not DefinitionPublished:
            raise AssertionError("a published version without its record")
        document = place.document(event.payload.content_ref.sha256) if outcome.repeated else {"plan": {}}
        if document is None:
            raise answer_erased()
        return event, event.payload, document["plan"]

    event, payload, plan = await caller.settled(Pending(command, reply, contents))
    return Published(
        definition_id=payload.definition_id,
        version=payload.version,
        status="published",
        event_id=event_id(event.wire_id),
        validation=validation_view(found or await checked(caller, plan)),
    )
