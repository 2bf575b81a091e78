"""`redkey step`: validate the envelopes between a workflow and a stateless agent (agent-protocol)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import click

from redkey.cli.documents import FILE, check_documents
from redkey.cli.report import report
from redkey.errors import Finding
from redkey.wire.step import SIZE_LIMIT, Kind, check_step


@click.group()
def command() -> None:
    """Validate agent-protocol input and output envelopes."""


@command.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--input", "kind", flag_value="input", help="Every document is an input.")
@click.option("--output", "kind", flag_value="output", help="Every document is an output.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per document.")
@click.pass_context
def validate(ctx: click.Context, files: tuple[str, ...], kind: str | None, as_json: bool) -> None:
    """Check envelopes; whether one is an input or an output is told by its fields.

    Each FILE is an envelope, or JSON lines of them; `-` reads standard input. Older forms are read, with
    a warning for each change. Exit 0 when every envelope is valid, 1 when one is not, 2 for wrong use.
    """

    def check(value: Any) -> tuple[str, Iterable[Finding]]:
        found, findings = check_step(value, cast(Kind | None, kind))
        return f"step {found}" if found else "", findings

    ctx.exit(0 if report(check_documents(files, check, size_limit=SIZE_LIMIT), as_json=as_json) else 1)
