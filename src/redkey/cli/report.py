"""Reports of commands that check documents: a line per finding for people, JSON lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click
import orjson

from redkey.errors import Finding


@dataclass(frozen=True, slots=True)
class Checked:
    """One checked document: its name (`file` or `file:line`) and its findings."""

    name: str
    findings: tuple[Finding, ...] = ()
    kind: str = ""

    @property
    def valid(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.name,
            "valid": self.valid,
            "kind": self.kind or None,
            "findings": [finding.as_json() for finding in self.findings],
        }


def report(checked: Iterable[Checked], *, as_json: bool, quiet: bool = False) -> bool:
    """Print each result as it comes, or only those with findings if quiet; return whether every document was valid."""
    good = bad = 0
    for one in checked:
        good, bad = good + one.valid, bad + (not one.valid)
        if quiet and not one.findings:
            continue
        if as_json:
            print_json(one.as_json())
        elif one.findings:
            print_findings(one)
        else:
            click.echo(f"{one.name}: {click.style('valid', fg='green')}{f' {one.kind}' if one.kind else ''}")
    if not as_json and good + bad > 1:
        click.echo(f"{good} valid, {bad} invalid")
    return bad == 0


def print_findings(one: Checked, *, err: bool = False) -> None:
    """Print a line for each finding: file, pointer, code, sentence; on standard error if the output is the data."""
    for finding in one.findings:
        label = click.style(finding.code, fg="red" if finding.severity == "error" else "yellow")
        click.echo(f"{one.name}: {shown(finding.pointer) or '/'}: {label}: {shown(finding.message)}", err=err)


def shown(text: str) -> str:
    """Escape characters of foreign text that would move the terminal's cursor or change colours."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def print_json(value: object) -> None:
    """Print one JSON document on one line of standard output."""
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()
