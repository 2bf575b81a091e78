"""`redkey card`: lint Agent Cards, and show what they make of an agent's prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from redkey.cli.documents import FILE, check_documents, contracts_option
from redkey.cli.next_step import Step, print_step
from redkey.cli.report import report
from redkey.cli.screen import print_done
from redkey.cli.session import json_option
from redkey.errors import Finding, RedKeyError
from redkey.wire import decode
from redkey.wire.card import read_card, validate_card
from redkey.wire.files import load
from redkey.wire.lint import Registry, lint_card, lint_output_types, read_registry


@click.group()
def command() -> None:
    """Lint and show Agent Cards."""


@command.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option(
    "--registry",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A JSON file {agents, roles, output_types}: names that the cards may use.",
)
@contracts_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per card.")
@click.pass_context
def lint(
    ctx: click.Context, files: tuple[str, ...], registry: Path | None, contracts_dirs: tuple[Path, ...], as_json: bool
) -> None:
    """Check cards against the schema and the rules that no schema can hold, as `redkey run` does.

    Each FILE is a card, or JSON lines of cards; `-` reads standard input. Errors make a card invalid,
    warnings are advice. Without --registry, output types are those of the contracts that ship and of --contracts, and
    routes are not looked up. Exit 0 when every card is valid, 1 when one is not, 2 for wrong use.
    """
    from redkey.runner.contracts import Contracts

    names = _load_registry(registry) if registry else None
    known = frozenset(contract.slug for contract in Contracts(contracts_dirs))

    unknown: dict[str, None] = {}

    def check(value: Any) -> tuple[str, Iterable[Finding]]:
        if findings := validate_card(value):
            wrong = (one.pointer for one in findings if one.code == "schema_additionalProperties")
            unknown.update((pointer.rpartition("/")[2], None) for pointer in wrong)
            return "Agent Card 1.0", findings
        card = read_card(value)
        found = lint_card(card, names)
        return "Agent Card 1.0", found if names is not None else [*found, *lint_output_types(card, known)]

    good = report(check_documents(files, check), as_json=as_json)
    if not as_json:
        print_step(Step(hint=_meant(unknown)))
    ctx.exit(0 if good else 1)


def _meant(unknown: Mapping[str, None]) -> str:
    """Return the nearest fields of the schema for unknown ones; without a near one, all fields."""
    fields = sorted(load("definitions/cards/agent-card.schema.json")["properties"])
    near = {word: get_close_matches(word, fields, 1) for word in unknown}
    if near and not any(near.values()):
        return f"the fields of a card are {', '.join(fields)}"
    return "; ".join(f"did you mean {found[0]} in place of {word}?" for word, found in near.items() if found)


@command.command()
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@json_option
def show(file: str, as_json: bool) -> None:
    """Print the parts of the prompt that a card makes: identity, abilities, limits, escalation, style and voice."""
    from redkey.runner.prompt import identity_parts
    from redkey.runner.spec import load_card

    card = load_card(file)
    print_done(card, "\n\n".join(identity_parts(card)), as_json=as_json)


def _load_registry(path: Path) -> Registry:
    try:
        return read_registry(decode.decode(path.read_bytes()))
    except (OSError, RedKeyError) as cause:
        what = f"{cause.pointer or '/'}: {cause.message}" if isinstance(cause, RedKeyError) else cause.strerror
        raise click.BadParameter(f"{click.format_filename(path)}: {what}", param_hint="--registry") from cause
