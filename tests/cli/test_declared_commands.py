"""Commands that follow from declarations: what becomes an argument, what an option, and how replies read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner
from msgspec import Meta

from redkey.cli import main
from redkey.cli.declared import command_of
from redkey.cli.look import Look, print_replies, print_reply
from redkey.shapes.fields import Body, Page, PageQuery, Reply
from redkey.shapes.operation import READ, Operation
from redkey.shapes.operations import operations


class Parcel(Body, frozen=True, kw_only=True):
    """One field of each kind."""

    label: Annotated[str, Meta(description="What it says on it.")]
    stamps: tuple[str, ...] = ()
    wait_seconds: Annotated[int, Meta(ge=1, le=9)] | None = None
    speed: Literal["slow", "fast"] = "slow"
    fragile: bool = False
    open_me: bool | None = None
    inside: dict[str, Any] | None = None
    agent_id: str | None = None
    workspace_id: str | None = None


class Receipted(Reply, frozen=True, kw_only=True):
    """What became of it."""

    parcel_id: str
    status: str
    weight: int = 0
    sent_at: str | None = None
    stamps: tuple[str, ...] = ()


SEND = Operation(
    *("send_parcel", "POST", "/shelves/{shelf_id}/parcels", READ),
    body=Parcel,
    reply=Receipted,
    summary="Send a parcel.",
    method_name="parcels.send",
    command="parcel send SHELF LABEL",
)


def parameters(look: Look | None = None) -> dict[str, Any]:
    return {one.name: one for one in command_of(SEND, "send", look or Look()).params if one.name}


def test_named_parameters_are_arguments_and_all_others_options() -> None:
    made = parameters()
    assert [one.metavar for one in made.values() if isinstance(one, click.Argument)] == ["SHELF", "LABEL"]
    flags = {name: one.opts + one.secondary_opts for name, one in made.items() if isinstance(one, click.Option)}
    assert flags == {
        "stamps": ["--stamp"],
        "wait_seconds": ["--wait"],
        "speed": ["--speed"],
        "fragile": ["--fragile"],
        "open_me": ["--open-me", "--no-open-me"],
        "inside": ["--inside"],
        "agent_id": ["--agent"],
        "workspace_id": ["--workspace"],
        "url": ["--url"],
        "data": ["--data"],
        "as_json": ["--json"],
    }


def test_options_take_what_their_fields_hold() -> None:
    made = parameters()
    assert made["stamps"].multiple
    assert (made["wait_seconds"].type.min, made["wait_seconds"].type.max, made["wait_seconds"].metavar) == (
        1,
        9,
        "SECONDS",
    )
    assert (tuple(made["speed"].type.choices), made["speed"].default) == (("slow", "fast"), "slow")
    assert made["fragile"].is_flag
    assert made["open_me"].default is None
    assert made["inside"].metavar == "JSON"
    assert made["agent_id"].help == "The agent, by id or slug."


def test_a_look_renames_options_and_leaves_some_out() -> None:
    made = parameters(Look(options={"speed": "--pace", "inside": ""}, examples=("redkey parcel send a b",)))
    assert made["speed"].opts == ["--pace"]
    assert "inside" not in made
    shown = command_of(SEND, "send", Look(examples=("redkey parcel send a b",))).help
    assert shown == "Send a parcel.\n\n\b\n  redkey parcel send a b"


REPLY = Receipted(parcel_id="par_1", status="sent", weight=1200, stamps=("a", "b"))


@pytest.mark.parametrize(
    ("look", "told"),
    [
        (Look(), "parcel id  par_1\nstatus     sent\nweight     1200\nstamps     a, b\n"),
        (Look(parts={"who": "parcel_id", "stamps": lambda one: len(one.stamps)}), "who     par_1\nstamps  2\n"),
        (Look(told="{shelf}: {parcel_id} weighs {weight:,}"), "top: par_1 weighs 1,200\n"),
        (Look(told=lambda one: one.status.upper()), "SENT\n"),
    ],
)
def test_a_reply_reads_as_its_look_says(look: Look, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_reply(REPLY, look, {"shelf": "top"}, as_json=False)
    assert capsys.readouterr().out == told


def test_lists_have_the_fields_that_fit_a_cell_when_no_look_says_more(capsys: pytest.CaptureFixture[str]) -> None:
    print_replies([REPLY], Receipted, Look(), as_json=False, ids_only=False)
    assert capsys.readouterr().out == "PARCEL ID  STATUS  WEIGHT  SENT\npar_1      sent    1200\n"
    print_replies([], Receipted, Look(empty="no parcels"), as_json=False, ids_only=False)
    assert capsys.readouterr().err == "no parcels\n"


def test_lists_ask_for_no_page() -> None:
    listing = Operation(
        *("list_parcels", "GET", "/parcels", READ), query=PageQuery, reply=Page[Receipted], method_name="parcels.list"
    )
    names = {one.name for one in command_of(listing, "list", Look()).params}
    assert names == {"url", "data", "as_json", "ids_only"}


@pytest.mark.parametrize("operation", [one for one in operations() if one.command], ids=lambda one: one.command)
def test_every_declared_command_is_there_and_has_help_for_each_option(operation: Operation) -> None:
    words = [word for word in operation.command.split() if word.islower()]
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0, result.output
    found = main.get_command(click.Context(main), words[0])
    assert isinstance(found, click.Group)
    options = [one for one in found.commands[words[-1]].params if isinstance(one, click.Option)]
    assert [one.name for one in options if not one.help] == []


def test_what_is_out_of_bounds_is_wrong_use() -> None:
    result = CliRunner().invoke(main, ["queue", "create", "x", "--max-attempts", "0"])
    assert (result.exit_code, "1<=x<=999" in result.stderr) == (2, True)
