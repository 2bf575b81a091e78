"""The output of the demo: a picture on a terminal, lines of text elsewhere, JSON lines for programs."""

from __future__ import annotations

import re
import time
from typing import NamedTuple, Protocol, Self

import click

from redkey.cli.demo.cast import GUESTS
from redkey.cli.demo.picture import Picture
from redkey.cli.demo.proof import Check
from redkey.cli.demo.scene import Moment, Scene
from redkey.cli.next_step import own_command
from redkey.cli.report import print_json
from redkey.cli.screen import print_table, wrapped

_FIRST = "A server with an empty ledger starts in a temporary directory."
_SECOND = "{count} agents register by their cards, {agents} a role, each a process with its own key."
_THIRD = f"{len(GUESTS)} podcast episodes begin at once. Agents race for each task; one wins, the others learn who won."
_SCORES = "The claim history of every agent, from the ledger:"
_GOOD = "The server is stopped. A receipt of one race, verified with two files and nothing else:"
_BAD = "The same receipt, after the loser put its own name in the winner's place:"
_LEVEL = re.compile(r"  \w+ +(?:does not hold|holds)? *")
_VERDICTS = re.compile(r"\bholds\b|does not hold(?= )|^refused:.*", re.MULTILINE)
_COLOURS = {"holds": "green", "does": "yellow", "refused:": "red"}
_NEXT = """What now? A server of your own, with its data in .redkey:
  {0} serve
In another terminal, a first task on it:
  {0} task create --role writer --title "Write the intro"
  {0} task list
An agent of your own, in five lines: docs/tutorial.md"""


def what_now() -> str:
    """Return the next commands to try, ready to be pasted into this shell."""
    return _NEXT.format(own_command())


class Score(NamedTuple):
    """An agent's claim outcomes, from the ledger."""

    role: str
    name: str
    won: int
    missed: int
    killed: bool


class Voice(Protocol):
    """The interface of the demo's outputs. It is a context manager for the time in which agents work."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *reason: object) -> None: ...

    def begin(self, agents: int) -> None: ...

    def tell(self, moment: Moment) -> None: ...

    def draw(self, scene: Scene) -> None: ...

    def scores(self, scores: list[Score], tasks: int) -> None: ...

    def proof(self, good: Check, bad: Check) -> None: ...


class PlainVoice:
    """Lines of text."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        click.echo()

    def begin(self, agents: int) -> None:
        for sentence in (_FIRST, _SECOND.format(count=4 * agents, agents=agents), _THIRD):
            click.echo(wrapped(sentence, 0))
        click.echo()

    def tell(self, moment: Moment) -> None:
        click.echo(f"{time.monotonic() - self._began:6.1f} s  {moment.text}")

    def draw(self, scene: Scene) -> None:
        """Lines tell everything."""

    def scores(self, scores: list[Score], tasks: int) -> None:
        click.echo(f"{click.style(_SCORES, bold=True)}\n")
        rows = [
            (one.role, one.name, str(one.won), str(one.missed), "killed; its task moved on" if one.killed else "")
            for one in scores
        ]
        print_table(("ROLE", "AGENT", "WON", "MISSED", ""), rows)
        won, missed = sum(one.won for one in scores), sum(one.missed for one in scores)
        again = f"{won - tasks} had a second one, because its first was killed"
        told = f"{tasks} tasks, {won} claims won, {missed} missed, and every loser learned who won."
        click.echo(f"\n{wrapped(told, 0)}\n{wrapped(f'No task had two winners at a time; {again}.', 0)}\n")

    def proof(self, good: Check, bad: Check) -> None:
        for title, one in ((_GOOD, good), (_BAD, bad)):
            click.echo(click.style(wrapped(title, 0), bold=True))
            click.echo(f"\n$ {one.command}\n{self._shown(one.said.rstrip())}\n")
        click.echo(what_now())

    def _shown(self, said: str) -> str:
        return said


class TerminalVoice(PlainVoice):
    """A picture while agents work, lines before and after."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console

        self._picture = Picture(Console(highlight=False))

    def __enter__(self) -> Self:
        self._picture.__enter__()
        return self

    def __exit__(self, *reason: object) -> None:
        self._picture.__exit__(*reason)
        super().__exit__()

    def tell(self, moment: Moment) -> None:
        self._picture.tell(moment)

    def draw(self, scene: Scene) -> None:
        self._picture.draw(scene)

    def _shown(self, said: str) -> str:
        """Return the verifier's output with the line breaks and colours of a terminal."""
        said = "\n".join(map(_wrapped, said.splitlines()))
        return _VERDICTS.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0].split()[0]]), said)


def _wrapped(line: str) -> str:
    """Return a line of the verifier, with the text after a level aligned in one column."""
    found = _LEVEL.match(line)
    indent = found.end() if found else 0
    return line[:indent] + wrapped(line[indent:], indent or 2)


class JsonVoice:
    """One JSON object per line: every moment, then the scores, then the verifier's output."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        """Nothing has to be closed."""

    def begin(self, agents: int) -> None:
        print_json({"kind": "begin", "agents": 4 * agents, "episodes": len(GUESTS)})

    def tell(self, moment: Moment) -> None:
        seconds = round(time.monotonic() - self._began, 3)
        print_json({"kind": moment.kind, "seconds": seconds, "text": moment.text})

    def draw(self, scene: Scene) -> None:
        """Lines tell everything."""

    def scores(self, scores: list[Score], tasks: int) -> None:
        print_json({"kind": "scores", "tasks": tasks, "agents": [one._asdict() for one in scores]})

    def proof(self, good: Check, bad: Check) -> None:
        print_json({"kind": "proof", "verified": good.code == 0, "tamperedRefused": bad.code == 1})
