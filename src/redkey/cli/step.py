"""`redkey step`: validate and migrate the envelopes between a workflow and a stateless agent (agent-protocol)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

import click

from redkey.cli.documents import FILE, check_documents, decode_document, documents
from redkey.cli.report import Checked, print_findings, report
from redkey.errors import Finding, JsonRefused
from redkey.wire.step import SIZE_LIMIT, Kind, check_step, migrate


@click.group()
def command() -> None:
    """Validate and migrate agent-protocol input and output envelopes."""


@command.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--input", "kind", flag_value="input", help="Every document is an input.")
@click.option("--output", "kind", flag_value="output", help="Every document is an output.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per document.")
@click.pass_context
def validate(ctx: click.Context, files: tuple[str, ...], kind: str | None, as_json: bool) -> None:
    """Check envelopes; their fields tell inputs from outputs.

    Each FILE is an envelope, or JSON lines of them; `-` reads standard input. Older forms are read, with
    a warning for each change. Exit 0 when every envelope is valid, 1 when one is not, 2 for wrong use.
    """

    def check(value: Any) -> tuple[str, Iterable[Finding]]:
        found, findings = check_step(value, cast(Kind | None, kind))
        return f"step {found}" if found else "", findings

    ctx.exit(0 if report(check_documents(files, check, size_limit=SIZE_LIMIT), as_json=as_json) else 1)


@command.command("migrate")
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--input", "kind", flag_value="input", help="The document is an input.")
@click.option("--output", "kind", flag_value="output", help="The document is an output.")
@click.pass_context
def migrate_file(ctx: click.Context, file: str, kind: str | None) -> None:
    """Print an envelope of an older form in today's form.

    FILE is an envelope, or JSON lines of them, then one line each; `-` reads standard input. Changes and losses
    are reported on standard error. Exit 0 when every envelope is valid after that, 1 when one is not.
    """
    valid = True
    for name, data in documents([file], SIZE_LIMIT):
        findings: list[Finding] = []
        try:
            value = decode_document(data, SIZE_LIMIT)
            found, findings = check_step(value, cast(Kind | None, kind))
        except JsonRefused as refused:
            found, findings = None, list(refused.findings())
        checked = Checked(name, tuple(findings))
        print_findings(checked, err=True)
        valid = valid and checked.valid
        if found is not None:
            text = json.dumps(migrate(found, value).value, ensure_ascii=False, indent=None if ":" in name else 2)
            click.echo(text)
    ctx.exit(0 if valid else 1)
