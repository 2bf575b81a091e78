"""How the reply of a declared command is shown to people: a sentence, facts or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from redkey.cli.next_step import Step, filled
from redkey.cli.screen import ago, print_created, print_details, print_done, print_list, styled
from redkey.shapes.signature import plain_types

# A value under a title: a field of the reply by name, or a function of the reply.
Shown: TypeAlias = str | Callable[[Any], Any]
_MOST_COLUMNS = 7


@dataclass(frozen=True, slots=True)
class Look:
    """The differences from the default look of the declaration."""

    # A sentence. Fields of the reply and arguments of the command are written in braces.
    told: str | Callable[[Any], str] = ""
    # The next command to run, for people at a terminal, and further advice.
    next_step: str = ""
    hint: str = ""
    # Title -> the value under it, for one object or for each item of a list.
    parts: Mapping[str, Shown] = field(default_factory=dict)
    # Whether agents are shown by name; in lists by id they are not.
    names_agents: bool = False
    # The text for an empty list.
    empty: str = ""
    # Parameter -> its option, if the name is not what people type; an empty text leaves the parameter out.
    options: Mapping[str, str] = field(default_factory=dict)
    # Command lines for the help.
    examples: tuple[str, ...] = ()


def print_reply(
    reply: Any,
    look: Look,
    arguments: Mapping[str, Any],
    *,
    as_json: bool,
    slugs: Mapping[str, str] | None = None,
    new_id: str = "",
) -> None:
    """Show one object: as JSON, as the look's sentence, or as facts, in which `slugs` name the agents.

    With `new_id`, show the id of what was created alone.
    """
    if new_id:
        print_created(reply, new_id, "", ids_only=True, as_json=as_json)
    elif callable(look.told):
        print_done(reply, look.told(reply), as_json=as_json)
    elif look.told:
        words = {**arguments, **{name: getattr(reply, name) for name in reply.__struct_fields__}}
        coloured = {name: styled(value) if isinstance(value, str) else value for name, value in words.items()}
        next_step = Step(filled(look.next_step, words), look.hint)
        print_done(reply, look.told.format_map(coloured), next_step=next_step, as_json=as_json)
    else:
        parts = look.parts or {
            name.removesuffix("_at").replace("_", " "): name for name in _names(reply.__struct_fields__)
        }
        facts = ((title, _named(_value(reply, shown), slugs or {})) for title, shown in parts.items())
        print_details(reply, facts, as_json=as_json)


def print_replies(
    items: Iterable[Any],
    item: Any,
    look: Look,
    *,
    as_json: bool,
    ids_only: bool,
    slugs: Mapping[str, str] | None = None,
) -> None:
    """Show a list: as JSON lines, as ids only, or as a table, in which `slugs` name the agents."""
    parts = look.parts or _columns(item)
    print_list(
        items,
        tuple(parts),
        lambda one: tuple(_cell(_named(_value(one, shown), slugs or {})) for shown in parts.values()),
        as_json=as_json,
        ids_only=ids_only,
        empty=look.empty,
    )


def _columns(item: Any) -> dict[str, Shown]:
    """Return the first fields that fit into a cell: texts, numbers and booleans."""
    types = {field.name: {*plain_types(field.type)} for field in msgspec.structs.fields(item)}
    names = [name for name in _names(types) if types[name] <= {str, int, float, bool}]
    return {name.removesuffix("_at").replace("_", " ").upper(): name for name in names[:_MOST_COLUMNS]}


def _names(fields: Iterable[str]) -> list[str]:
    """The fields to show: `status` is an earlier name of `state`, so one of them is enough."""
    names = list(fields)
    return [name for name in names if name != "status" or "state" not in names]


def _value(reply: Any, shown: Shown) -> Any:
    if not isinstance(shown, str):
        return shown(reply)
    value = getattr(reply, shown)
    return ago(value) if shown.endswith("_at") else value


def _named(value: Any, slugs: Mapping[str, str]) -> Any:
    """Replace the ids of agents by their names in a value."""
    if isinstance(value, list | tuple):
        named = [_named(one, slugs) for one in value]
        # Ids of agents are hashes, so their order has no meaning.
        return sorted(named) if named != list(value) else named
    return slugs.get(value, value) if isinstance(value, str) else value


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
