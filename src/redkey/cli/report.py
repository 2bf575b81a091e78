"""How commands that check documents report: for people a line per finding, for machines JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import click
import orjson

from redkey.errors import Finding


@dataclass(frozen=True, slots=True)
class Checked:
    """One document that was checked: its name (`file` or `file:line`) and what was found in it."""

    name: str
    findings: tuple[Finding, ...] = ()
    kind: str = ""

    @property
    def valid(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


def report(checked: Iterable[Checked], *, as_json: bool) -> bool:
    """Print each result as it comes; true when every document was valid."""
    good = bad = 0
    for one in checked:
        good, bad = good + one.valid, bad + (not one.valid)
        if as_json:
            print_json(
                {
                    "file": one.name,
                    "valid": one.valid,
                    "kind": one.kind or None,
                    "findings": [finding.as_json() for finding in one.findings],
                }
            )
            continue
        if not one.findings:
            click.echo(f"{one.name}: {click.style('valid', fg='green')}{f' {one.kind}' if one.kind else ''}")
        for finding in one.findings:
            colour = "red" if finding.severity == "error" else "yellow"
            label = click.style(finding.code, fg=colour)
            click.echo(f"{one.name}: {shown(finding.pointer) or '/'}: {label}: {shown(finding.message)}")
    if not as_json and good + bad > 1:
        click.echo(f"{good} valid, {bad} invalid")
    return bad == 0


def shown(text: str) -> str:
    """Text of a stranger's document for a terminal: what would move the cursor or colour the screen is escaped."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def print_json(value: object) -> None:
    """One JSON document on one line of standard output."""
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()
