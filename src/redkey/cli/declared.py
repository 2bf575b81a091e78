"""Declared commands: commands generated from the declaration of an operation (`redkey.shapes`).

The parameters that `command` names are arguments, all others options. The command calls the SDK's method and shows the
reply with a `Look`. An agent may be named by its slug, and the default workspace is the key's own. Commands with their
own flow or view are written by hand and replace declared ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import click
from msgspec import Meta

from redkey.cli.look import Look, print_replies, print_reply
from redkey.cli.session import agent_id_of, daily, ids_option, own_workspace, slugs_of
from redkey.cli.values import json_value
from redkey.shapes.fields import Page
from redkey.shapes.operation import Operation
from redkey.shapes.operations import operations
from redkey.shapes.signature import Parameter, parameters, plain_types

if TYPE_CHECKING:
    from redkey.client import RedKey

_PAGE = ("limit", "after")
# The last words of commands that create something: they print its id, and nothing else with -q.
_CREATE = ("create", "invite")
_HELP = {"agent_id": "The agent, by id or slug.", "workspace_id": "The workspace [your key's own]."}


def declared_group(name: str, purpose: str, looks: Mapping[str, Look] | None = None) -> click.Group:
    """Return the group of all commands that are declared under a name."""
    group = click.Group(name, help=purpose)
    add_declared(group, name, looks or {})
    return group


def add_declared(group: click.Group, name: str, looks: Mapping[str, Look]) -> None:
    """Add the commands that are declared under a group's name and not written by hand."""
    for operation in operations():
        words = [word for word in operation.command.split() if word.islower()]
        if words[:1] == [name] and words[-1] not in group.commands:
            group.add_command(command_of(operation, words[-1], looks.get(words[-1], Look())))


def command_of(operation: Operation, name: str, look: Look) -> click.Command:
    """Build the command of one operation."""
    family, _, method = operation.method_name.partition(".")
    is_list = get_origin(operation.reply) is Page
    creates = name in _CREATE
    left_out = {name for name, option in look.options.items() if not option} | ({*_PAGE} if is_list else set())
    asked = {one.name: one for one in parameters(operation) if one.name not in left_out}

    def run(rk: RedKey, as_json: bool, ids_only: bool = False, **given: Any) -> None:
        known = {name: value for name, value in given.items() if value not in (None, ())}
        reply = getattr(getattr(rk, family), method)(**dict(_resolved(rk, asked, known)))
        slugs = slugs_of(rk) if look.names_agents and not (as_json or ids_only) else {}
        if is_list:
            [item] = get_args(operation.reply)
            group = operation.command.split()[0]
            shown = look if look.empty else replace(look, empty=f"no {group}s yet")
            print_replies(reply, item, shown, as_json=as_json, ids_only=ids_only, slugs=slugs)
        else:
            words = {name.removesuffix("_id"): value for name, value in known.items()}
            new_id = _id_of(reply, operation.command.split()[0]) if ids_only else ""
            print_reply(reply, look, words, as_json=as_json, slugs=slugs, new_id=new_id)

    command = click.command(name, help=_help(operation, look))(daily(ids_option(run) if is_list or creates else run))
    words = [word for word in operation.command.split() if word.isupper()]
    arguments = {one.name: _word(one) for one in asked.values() if _is_argument(one, words)}
    made: list[click.Parameter] = [_argument(asked[one], metavar) for one, metavar in arguments.items()]
    made += [_option(one, look) for one in asked.values() if one.name not in arguments]
    command.params[:0] = made
    return command


def _id_of(reply: Any, group: str) -> str:
    """The id of what was created: `key_id` of a key, or `id`."""
    return str(getattr(reply, f"{group}_id", None) or reply.id)


def _resolved(rk: RedKey, asked: Mapping[str, Parameter], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the arguments of the call, with agents as ids and the default workspace."""
    for name, value in given.items():
        yield name, agent_id_of(rk, value) if name == "agent_id" else value
    if "workspace_id" in asked and asked["workspace_id"].required and "workspace_id" not in given:
        yield "workspace_id", own_workspace(rk)


def _help(operation: Operation, look: Look) -> str:
    """Return the help text: what the command does, and examples."""
    examples = "\n".join(f"  {one}" for one in look.examples)
    return f"{operation.purpose}\n\n\b\n{examples}" if examples else operation.purpose


def _word(one: Parameter) -> str:
    return one.name.removesuffix("_id").upper()


def _is_argument(one: Parameter, words: list[str]) -> bool:
    """Whether a parameter is positional: as the declaration says, or else if it is in the path."""
    if words:
        return one.name.upper() in words or _word(one) in words
    return one.place == "path" and one.name != "workspace_id"


def _argument(one: Parameter, metavar: str) -> click.Argument:
    return click.Argument([one.name], metavar=metavar, required=one.required, type=_type(one))


def _option(one: Parameter, look: Look) -> click.Option:
    several = get_origin(one.types[0]) in (list, tuple) and _type(one) is not json_value
    word = one.name.removesuffix("_seconds").removesuffix("_id").replace("_", "-")
    flag = look.options.get(one.name, f"--{_singular(word) if several else word}")
    told = one.description or _HELP.get(one.name, "")
    told = f"{told} Repeat for more.".lstrip() if several else told
    if one.types == (bool,):
        # A setting that is unchanged unless given has an on and an off switch.
        switch = f"{flag}/--no-{flag[2:]}" if one.default is None else flag
        return click.Option([switch, one.name], default=None, is_flag=True, help=told)
    default = one.default if isinstance(one.default, int | float | str) and one.default != "" else None
    return click.Option(
        [flag, one.name],
        type=_type(one),
        multiple=several,
        required=one.required and one.name != "workspace_id",
        default=default,
        show_default=default is not None,
        metavar=_metavar(one),
        help=told,
    )


def _metavar(one: Parameter) -> str | None:
    if one.name.endswith("_seconds"):
        return "SECONDS"
    if one.name.endswith("_id"):
        return "AGENT" if one.name == "agent_id" else "ID"
    if _type(one) is json_value:
        return "JSON"
    return "N" if isinstance(_type(one), click.IntRange | click.FloatRange) else None


def _type(one: Parameter) -> Any:
    """Return the click type of an argument or option; the server validates the value again."""
    kinds = one.types
    if len(kinds) == 1 and get_origin(kinds[0]) in (list, tuple):
        [inside, *_] = get_args(kinds[0])
        kinds = plain_types(inside)
    kind = kinds[0]
    if len(kinds) == 1 and get_origin(kind) is Literal:
        words = get_args(kind)
        return click.Choice(words) if isinstance(words[0], str) else click.IntRange(min(words), max(words))
    if kinds == (int,):
        return click.IntRange(*_bounds(one.kind))
    if kinds == (float,):
        return click.FloatRange(*_bounds(one.kind))
    return str if kinds == (str,) else json_value


def _bounds(kind: Any) -> tuple[Any, Any]:
    """Return the bounds in the annotation of a number."""
    if get_origin(kind) is Annotated:
        for one in get_args(kind)[1:]:
            if isinstance(one, Meta):
                return one.ge, one.le
    return next((found for found in map(_bounds, get_args(kind)) if found != (None, None)), (None, None))


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
