"""How the reply of a declared command reads for people: a sentence, facts or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from redkey.cli.next_step import Step, filled
from redkey.cli.screen import ago, print_details, print_done, print_list, styled
from redkey.shapes.signature import plain_types

# What is shown under a title: a field of the reply by its name, or what a function makes of the reply.
Shown: TypeAlias = str | Callable[[Any], Any]
_MOST_COLUMNS = 7


@dataclass(frozen=True, slots=True)
class Look:
    """What differs from the look that follows from the declaration."""

    # A sentence. Fields of the reply and arguments of the command stand in braces.
    told: str | Callable[[Any], str] = ""
    # The command that one can run next, for people at a terminal, and what else they should know.
    next_step: str = ""
    hint: str = ""
    # Title -> what is shown under it, of one thing or of each item of a list.
    parts: Mapping[str, Shown] = field(default_factory=dict)
    # In place of an empty list.
    empty: str = "nothing found"
    # Parameter -> its option, where the name is not what people type; without one it is left out.
    options: Mapping[str, str] = field(default_factory=dict)
    # Command lines for the help.
    examples: tuple[str, ...] = ()


def print_reply(reply: Any, look: Look, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    """One thing: as JSON, as the sentence that the look has, or as facts."""
    if callable(look.told):
        print_done(reply, look.told(reply), as_json=as_json)
    elif look.told:
        words = {**arguments, **{name: getattr(reply, name) for name in reply.__struct_fields__}}
        coloured = {name: styled(value) if isinstance(value, str) else value for name, value in words.items()}
        next_step = Step(filled(look.next_step, words), look.hint)
        print_done(reply, look.told.format_map(coloured), next_step=next_step, as_json=as_json)
    else:
        parts = look.parts or {name.removesuffix("_at").replace("_", " "): name for name in reply.__struct_fields__}
        print_details(reply, ((title, _value(reply, shown)) for title, shown in parts.items()), as_json=as_json)


def print_replies(items: Iterable[Any], item: Any, look: Look, *, as_json: bool, ids_only: bool) -> None:
    """A list: as JSON lines, as ids alone, or as a table."""
    parts = look.parts or _columns(item)
    print_list(
        items,
        tuple(parts),
        lambda one: tuple(_cell(_value(one, shown)) for shown in parts.values()),
        as_json=as_json,
        ids_only=ids_only,
        empty=look.empty,
    )


def _columns(item: Any) -> dict[str, Shown]:
    """The first fields that fit a cell: texts, numbers, yes or no."""
    names = [one.name for one in msgspec.structs.fields(item) if {*plain_types(one.type)} <= {str, int, float, bool}]
    return {name.removesuffix("_at").replace("_", " ").upper(): name for name in names[:_MOST_COLUMNS]}


def _value(reply: Any, shown: Shown) -> Any:
    if not isinstance(shown, str):
        return shown(reply)
    value = getattr(reply, shown)
    return ago(value) if shown.endswith("_at") else value


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
