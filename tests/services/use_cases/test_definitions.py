"""Definitions by their use cases: drafts that others change meanwhile, and published versions that are told again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from redkey.commands.decision import Refused
from redkey.commands.registry import EraseContent
from redkey.services.caller import Caller
from redkey.services.definitions import merge_patch, read_version
from redkey.services.use_case import InsufficientScope, UseCase
from redkey.services.use_cases.definitions import (
    change_definition,
    create_definition,
    create_version,
    get_definition,
    list_definitions,
    publish_definition,
    validate_definition,
)
from redkey.shapes.definitions import (
    Definition,
    DefinitionQuery,
    DefinitionsQuery,
    DraftChange,
    NewDefinition,
    NewVersion,
    PlanBody,
)
from tests.harness.callers import Callers, with_callers
from tests.harness.runs import plan_of, step

PLAN = plan_of(step("a", outputs=["text"]), step("b", "a", outputs=["more"]))
T = TypeVar("T")


class Overtaken(Caller):
    """A caller whose first look at the store is out of date when it comes to write."""

    meanwhile: Callable[[], Awaitable[Any]] | None = None

    async def in_thread(self, work: Callable[[], T]) -> T:
        found = await super().in_thread(work)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return found


def overtaken(callers: Callers, meanwhile: Callable[[], Awaitable[Any]]) -> Caller:
    caller = Overtaken(callers.app.services)
    caller.authenticated(callers.admin.principal)
    caller.meanwhile = meanwhile
    return caller


async def created(callers: Callers) -> str:
    return str((await callers.call(create_definition, NewDefinition(plan=PLAN))).definition_id)


async def shown(callers: Callers, key: str, version: int | None = None) -> Definition:
    found: Definition = await callers.call(get_definition, key, DefinitionQuery(version=version))
    return found


async def refused(answer: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(Refused) as error:
        await answer
    return error.value.status, error.value.code


def renamed(name: str, revision: int = 1) -> DraftChange:
    return DraftChange(plan={"name": name}, revision=revision)


def test_a_change_that_was_overtaken_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        key = await created(callers)
        caller = overtaken(callers, lambda: callers.call(change_definition, key, renamed("theirs")))
        answer = callers.call(change_definition, key, renamed("ours", 1), caller=caller)
        assert await refused(answer) == (409, "draft_changed")
        assert (await shown(callers, key)).name == "theirs"
        draft = await callers.call(change_definition, key, DraftChange(plan={"description": "Ours."}, revision=2))
        assert (draft.revision, (await shown(callers, key)).plan) == (
            3,
            {**PLAN, "name": "theirs", "description": "Ours."},
        )

    with_callers(tmp_path, test)


@pytest.mark.parametrize("begun_again", [False, True])
def test_a_change_of_a_draft_that_was_published_meanwhile_is_refused(tmp_path: Path, begun_again: bool) -> None:
    async def test(callers: Callers) -> None:
        key = await created(callers)

        async def publish() -> None:
            await callers.call(publish_definition, key)
            if begun_again:
                # The draft of the next version, at revision 1 too.
                await callers.call(create_version, key, NewVersion())

        answer = callers.call(change_definition, key, renamed("ours"), caller=overtaken(callers, publish))
        assert await refused(answer) == (409, "draft_changed" if begun_again else "no_draft")
        assert (await shown(callers, key)).name == "a-plan"

    with_callers(tmp_path, test)


def test_of_two_requests_that_begin_a_version_one_is_refused(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        key = await created(callers)
        await callers.call(publish_definition, key)
        both = [callers.call(create_version, key, NewVersion()) for _ in range(2)]
        begun, other = sorted(await asyncio.gather(*both, return_exceptions=True), key=lambda one: type(one).__name__)
        assert (begun.version, begun.revision, begun.name) == (2, 1, "a-plan")
        assert isinstance(other, Refused)
        assert other.code == "draft_exists"

    with_callers(tmp_path, test)


def test_a_draft_that_was_changed_after_its_validation_is_not_published(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        key = await created(callers)
        caller = overtaken(callers, lambda: callers.call(change_definition, key, renamed("other")))
        assert await refused(callers.call(publish_definition, key, caller=caller)) == (409, "draft_changed")
        assert (await shown(callers, key)).status == "draft"

    with_callers(tmp_path, test)


def test_a_repeated_publication_is_told_by_its_record_whatever_was_published_since(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        key = await created(callers)
        first = await callers.call(publish_definition, key, caller=callers.caller("admin", idempotency_key="one"))
        await callers.call(create_version, key, NewVersion())
        await callers.call(publish_definition, key)
        again = await callers.call(publish_definition, key, caller=callers.caller("admin", idempotency_key="one"))
        assert again == first
        assert (first.version, (await shown(callers, key)).version) == (1, 2)

    with_callers(tmp_path, test)


def test_a_repeated_publication_whose_plan_was_erased_is_gone(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        key = await created(callers)
        caller = callers.caller("admin", idempotency_key="one")
        await callers.call(publish_definition, key, caller=caller)
        version = read_version(callers.store, callers.topic, key, 1)
        assert version is not None
        coordinator = callers.app.services.coordinator
        await coordinator.submit(callers.topic, caller.actor, EraseContent(version.content_sha256))
        again = callers.caller("admin", idempotency_key="one")
        assert await refused(callers.call(publish_definition, key, caller=again)) == (410, "answer_erased")
        assert ((await shown(callers, key)).erased, (await shown(callers, key)).plan) == (True, None)
        assert await refused(callers.call(create_version, key, NewVersion())) == (409, "content_erased")
        begun = await callers.call(create_version, key, NewVersion(plan=PLAN))
        assert begun.version == 2

    with_callers(tmp_path, test)


def test_drafts_and_published_definitions_are_listed_by_id(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        keys = sorted([await created(callers) for _ in range(3)])
        await callers.call(publish_definition, keys[1])
        first = await callers.call(list_definitions, DefinitionsQuery(limit=2))
        rest = await callers.call(list_definitions, DefinitionsQuery(limit=2, after=first.next))
        items = [*first.items, *rest.items]
        assert ([one.definition_id for one in items], rest.next) == (keys, None)
        assert [(one.status, one.version, one.draft_version) for one in items] == [
            ("draft", None, 1),
            ("published", 1, None),
            ("draft", None, 1),
        ]

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    ("use", "arguments"),
    [
        (create_definition, (NewDefinition(plan=PLAN),)),
        (change_definition, ("def_x", renamed("x"))),
        (create_version, ("def_x", NewVersion())),
        (publish_definition, ("def_x",)),
    ],
)
def test_readers_may_validate_and_look_and_nothing_more(
    tmp_path: Path, use: UseCase[Any, Any], arguments: tuple[Any, ...]
) -> None:
    async def test(callers: Callers) -> None:
        reader = callers.caller("read")
        assert (await callers.call(validate_definition, PlanBody(plan=PLAN), caller=reader)).valid
        with pytest.raises(InsufficientScope):
            await callers.call(use, *arguments, caller=reader)

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        # The examples of RFC 7396, appendix A, whose patch is an object.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_is_that_of_rfc_7396(target: Any, patch: Any, merged: Any) -> None:
    before = repr(target)
    assert merge_patch(target, patch) == merged
    assert repr(target) == before
