"""Workflow definitions: validated, drafted, changed, published. A published version never changes."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from redkey.api.call import Call
from redkey.api.fields import Body, Listed, Page
from redkey.api.plans import EXAMPLE, PlanDeclined, ValidationView, checked, validation_view
from redkey.commands.decision import not_found
from redkey.commands.workflows import PublishDefinition
from redkey.http.route import PRODUCE, READ, Route
from redkey.ledger.ports import Content
from redkey.ledger.record import iso_time
from redkey.plans.validate import validate
from redkey.readmodel.view import View, read_document
from redkey.reducers.entities import Definition, Version
from redkey.services.caller import NO_CONTENT
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
    no_draft,
    read_definition,
    read_draft,
    read_version,
    versions,
)
from redkey.services.planning import prepare
from redkey.services.use_cases.texts import refuse_secrets_beside
from redkey.wire.decode import decode
from redkey.wire.ids import event_id

# So many published versions are listed with a definition, the last ones.
_VERSIONS_SHOWN = 100


class PlanBody(Body, frozen=True, kw_only=True):
    """A plan to be looked at."""

    plan: dict[str, Any]


class NewDefinition(Body, frozen=True, kw_only=True):
    """The plan of a new definition; a draft may still have errors."""

    plan: dict[str, Any]


class NewVersion(Body, frozen=True, kw_only=True):
    """The plan of the next version's draft; that of the last version when none is given."""

    plan: dict[str, Any] | None = None


class DraftChange(Body, frozen=True, kw_only=True):
    """What to change about the draft's plan: a JSON merge patch (RFC 7396). `revision` is the one it must have."""

    plan: dict[str, Any]
    revision: Annotated[int, Meta(ge=1, lt=1 << 31)] | None = None


class DraftView(View, frozen=True, kw_only=True):
    """A draft; `validation` says what keeps it from being published."""

    definition_id: str
    version: int
    status: Literal["draft"]
    name: str = ""
    revision: int
    validation: ValidationView
    updated_at: str


class PublishedView(View, frozen=True, kw_only=True):
    """A version that can be run and never changes."""

    definition_id: str
    version: int
    status: Literal["published"]
    event_id: str
    validation: ValidationView


class VersionView(View, frozen=True, kw_only=True):
    """One published version."""

    version: int
    published_at: str
    published_by: str
    event_id: str


class DefinitionSummary(View, frozen=True, kw_only=True):
    """A definition in a list. `version` is the last one that was published, `draftVersion` the one in work."""

    definition_id: str
    name: str = ""
    status: Literal["draft", "published"]
    version: int | None = None
    draft_version: int | None = None
    erased: bool = False


class DefinitionView(DefinitionSummary, frozen=True, kw_only=True):
    """A definition with a plan: the draft's, else that of the last version, else that of the version asked for."""

    shown_version: int
    revision: int | None = None
    plan: dict[str, Any] | None = None
    validation: ValidationView | None = None
    versions: tuple[VersionView, ...]


class DefinitionQuery(Body, frozen=True, kw_only=True):
    """Which version's plan to show."""

    version: Annotated[int, Meta(ge=1, le=999_999)] | None = None


async def validate_definition(call: Call, body: PlanBody) -> ValidationView:
    """Check a plan without saving or starting it."""
    return validation_view(await checked(call, body.plan))


async def create_definition(call: Call, body: NewDefinition) -> DraftView:
    """Save a plan as the draft of a new definition."""
    idem, body_hash = call.identity
    definition_id = definition_id_of(idem, call.services.ids.ulid)
    await refuse_secrets_beside(call, body.plan, under="/plan")
    plan = await call.in_thread(lambda: encoded(body.plan))
    draft = await call.act(lambda unit: create_draft(unit, call.topic, definition_id, plan, body_hash))
    return await _draft_view(call, draft)


async def _draft_view(call: Call, draft: StoredDraft) -> DraftView:
    plan = draft_plan(draft)
    found = await checked(call, plan)
    return DraftView(
        definition_id=draft.definition_id,
        version=draft.version,
        status="draft",
        name=_name(plan),
        revision=draft.revision,
        validation=validation_view(found),
        updated_at=iso_time(draft.updated_at),
    )


def _name(plan: dict[str, Any] | None) -> str:
    name = (plan or {}).get("name", "")
    return name if isinstance(name, str) else ""


async def list_definitions(call: Call) -> Listed[DefinitionSummary]:
    """The definitions of the workspace, by id."""
    asked: Page = call.query
    keys = definition_ids(call.services.store, call.topic, asked.after, asked.limit)
    return Listed(tuple(_summary(call, key) for key in keys), keys[-1] if len(keys) == asked.limit else None)


def _summary(call: Call, definition_id: str) -> DefinitionSummary:
    draft, definition = _both(call, definition_id)
    plan = _plan(call, draft, definition, None)
    return DefinitionSummary(**_header(definition_id, draft, definition, plan))


def _both(call: Call, definition_id: str) -> tuple[StoredDraft | None, Definition | None]:
    store = call.services.store
    return read_draft(store, call.topic, definition_id), read_definition(store, call.topic, definition_id)


def _header(
    definition_id: str, draft: StoredDraft | None, definition: Definition | None, plan: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "definition_id": definition_id,
        "name": _name(plan),
        "status": "published" if definition is not None else "draft",
        "version": definition.version if definition is not None else None,
        "draft_version": draft.version if draft is not None else None,
        "erased": plan is None,
    }


def _plan(
    call: Call, draft: StoredDraft | None, definition: Definition | None, version: int | None
) -> dict[str, Any] | None:
    """The plan of a version, of the draft when none is named, else of the last version."""
    store = call.services.store
    if draft is not None and version in (None, draft.version):
        return draft_plan(draft)
    if definition is None:
        raise not_found("version")
    found = read_version(store, call.topic, definition.definition_id, version or definition.version)
    if found is None:
        raise not_found("version")
    document = read_document(store, call.topic, found.content_sha256)
    return document["plan"] if document is not None else None


async def get_definition(call: Call) -> DefinitionView:
    """One definition with its versions and a plan."""
    definition_id, asked = call.path["definition_id"], call.query.version
    draft, definition = _both(call, definition_id)
    if draft is None and definition is None:
        raise not_found("definition")
    plan = _plan(call, draft, definition, asked)
    last = definition.version if definition is not None else 0
    shown = asked or (draft.version if draft is not None else last)
    is_draft = draft is not None and shown == draft.version
    return DefinitionView(
        **_header(definition_id, draft, definition, plan),
        shown_version=shown,
        revision=draft.revision if draft is not None and is_draft else None,
        plan=plan,
        validation=validation_view(await checked(call, plan)) if plan is not None else None,
        versions=tuple(
            _version(call, one)
            for one in list(versions(call.services.store, call.topic, definition_id))[-_VERSIONS_SHOWN:]
        ),
    )


def _version(call: Call, version: Version) -> VersionView:
    (record,) = call.services.store.read(call.topic, version.sequence - 1, 1)
    return VersionView(
        version=version.version,
        published_at=iso_time(version.published_at),
        published_by=version.published_by,
        event_id=event_id(decode(record.wire)["wire_id"]),
    )


async def change_definition(call: Call, body: DraftChange) -> DraftView:
    """Change the draft; a published version never changes."""
    await refuse_secrets_beside(call, body.plan, under="/plan")
    store, definition_id = call.services.store, call.path["definition_id"]

    def merged() -> tuple[StoredDraft, msgspec.Raw]:
        before = live_draft(store, call.topic, definition_id, body.revision or 0)
        return before, encoded(merge_patch(draft_plan(before), body.plan))

    # A plan may be large, so it is merged in a thread; who changed the draft meanwhile goes first.
    draft: StoredDraft | None = None
    while draft is None:
        before, plan = await call.in_thread(merged)
        draft = await call.act(partial(change_draft, topic=call.topic, before=before, plan=plan))
    return await _draft_view(call, draft)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396; documents are not nested deeper than the door lets them be."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


async def create_version(call: Call, body: NewVersion) -> DraftView:
    """Begin the draft of the next version."""
    await refuse_secrets_beside(call, body.plan or {}, under="/plan")
    given, definition_id = body.plan, call.path["definition_id"]
    plan = await call.in_thread(lambda: encoded(given)) if given is not None else None
    draft = await call.act(lambda unit: begin_version(unit, call.topic, definition_id, plan))
    return await _draft_view(call, draft)


async def publish_definition(call: Call) -> PublishedView:
    """Publish the draft: from now on it can be run, and never changes."""
    definition_id = call.path["definition_id"]
    draft, definition = _both(call, definition_id)
    if call.is_repeat and definition is not None:
        # The draft is gone; what was published is told by its record.
        return await _published(call, PublishDefinition(definition_id, definition.version, NO_CONTENT, NO_CONTENT), ())
    if draft is None:
        raise no_draft() if definition is not None else not_found("definition")
    plan = draft_plan(draft)
    found = await checked(call, plan)
    if not found.valid:
        raise PlanDeclined(found, "")
    prepared = prepare(plan, call.services.ids.nonce)
    command = PublishDefinition(
        definition_id, draft.version, prepared.structure_ref, prepared.content_ref, draft.revision
    )
    return await _published(call, command, prepared.contents)


async def _published(call: Call, command: PublishDefinition, contents: tuple[Content, ...]) -> PublishedView:
    wire = (await call.submit(command, contents)).records[0].wire
    document = read_document(call.services.store, call.topic, wire["payload"]["content_ref"]["sha256"])
    return PublishedView(
        definition_id=wire["payload"]["definition_id"],
        version=wire["payload"]["version"],
        status="published",
        event_id=event_id(wire["wire_id"]),
        validation=validation_view(validate(document["plan"] if document is not None else {})),
    )


ROUTES = [
    Route(
        "POST",
        "/workflow-definitions/validate",
        validate_definition,
        (*PRODUCE, *READ),
        body=PlanBody,
        reply=ValidationView,
        repeats="bytes",
        summary="Check a plan without saving or starting it; always 200.",
        body_limit="plan_bytes",
        example={"plan": EXAMPLE},
        reply_example={"valid": True, "errors": [], "warnings": []},
    ),
    Route(
        "POST",
        "/workflow-definitions",
        create_definition,
        PRODUCE,
        body=NewDefinition,
        reply=DraftView,
        status=201,
        repeats="bytes",
        summary="Save a plan as the draft of a new definition.",
        idempotent=True,
        body_limit="plan_bytes",
        example={"plan": EXAMPLE},
    ),
    Route(
        "GET",
        "/workflow-definitions",
        list_definitions,
        READ,
        query=Page,
        reply=Listed[DefinitionSummary],
        summary="The definitions of the workspace.",
    ),
    Route(
        "GET",
        "/workflow-definitions/{definition_id}",
        get_definition,
        READ,
        query=DefinitionQuery,
        reply=DefinitionView,
        summary="One definition with its versions and a plan.",
    ),
    Route(
        "PATCH",
        "/workflow-definitions/{definition_id}",
        change_definition,
        PRODUCE,
        body=DraftChange,
        reply=DraftView,
        repeats="bytes",
        summary="Change the draft by a JSON merge patch.",
        replies={409: "There is no draft, or it was changed meanwhile."},
        body_limit="plan_bytes",
        example={"plan": {"policies": {"maxParallelTasks": 3}}, "revision": 1},
    ),
    Route(
        "POST",
        "/workflow-definitions/{definition_id}/versions",
        create_version,
        PRODUCE,
        body=NewVersion,
        reply=DraftView,
        status=201,
        repeats="bytes",
        summary="Begin the draft of the next version.",
        replies={409: "There is a draft already."},
        body_limit="plan_bytes",
        example={},
    ),
    Route(
        "POST",
        "/workflow-definitions/{definition_id}/publish",
        publish_definition,
        PRODUCE,
        reply=PublishedView,
        summary="Publish the draft.",
        replies={409: "There is no draft, or it was changed meanwhile.", 422: "Something stands against the plan."},
        idempotent=True,
    ),
]
