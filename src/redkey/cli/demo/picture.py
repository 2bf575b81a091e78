"""The picture: the scene on a terminal, redrawn a few times a second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from redkey.cli.demo.scene import Agent, Kind, Moment, Scene, Step

_SIGNS: dict[Kind, tuple[str, str]] = {
    "won": ("●", "yellow"),
    "moved": ("●", "bold yellow"),
    "missed": ("○", "bright_black"),
    "killed": ("✗", "bold red"),
    "expired": ("↻", "magenta"),
    "done": ("✓", "green"),
    "gate": ("◇", "blue"),
    "approved": ("◆", "green"),
    "finished": ("★", "bold green"),
}
_STATES = (("completed", "green"), ("working", "yellow"), ("available", "cyan"), ("created", "bright_black"))
_BAR = 28
# The lines for the grid, the agents and the headings; the rest of the window is for the feed.
_OTHER_LINES = 23
_MOST_FEED = 9


# How long an important moment stays in the headline.
_HEADLINE_SECONDS = 3.0
_RACING = "Agents claim each task they see; the ledger's order decides, and losers learn who won."
_LEGEND = "● at work, with its lease in seconds  ✗ killed  ✓ done  ○ open  ◇ needs a human"


class Picture:
    """Draws the scene in place, with the latest moments below it."""

    def __init__(self, console: Console) -> None:
        self._began = time.monotonic()
        self._feed: deque[tuple[Moment, list[str]]] = deque(maxlen=_MOST_FEED)
        self._turn: tuple[float, Moment] | None = None
        self._scene: Scene | None = None
        self._live = Live(self, console=console, refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._live.stop()

    def tell(self, moment: Moment) -> None:
        """Add a moment to the feed; agents that missed a race are listed after its winner."""
        if moment.kind == "missed":
            for won, losers in self._feed:
                if won.claim_id == moment.claim_id:
                    losers.append(moment.agent)
                    return
        self._feed.append((moment, []))
        if moment.kind in ("expired", "moved"):
            self._turn = time.monotonic() + _HEADLINE_SECONDS, moment

    def draw(self, scene: Scene) -> None:
        self._scene = scene

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._scene is None:
            return
        scene, seconds = self._scene, time.monotonic() - self._began
        room = max(0, min(_MOST_FEED, console.size.height - _OTHER_LINES))
        head = Text.assemble(("RedKey", "bold red"), f"  {len(scene.agents)} agents, 6 podcast episodes, one ledger  ")
        head.append(f"{seconds:4.1f} s", style="dim")
        yield Group(
            head,
            Text(),
            _grid(scene),
            Text(_LEGEND, style="bright_black", no_wrap=True, overflow="ellipsis"),
            Text(),
            _progress(scene),
            Text(),
            _agents(scene),
            Text(),
            self._headline(scene),
            Rule(style="bright_black"),
            *(_line(moment, losers) for moment, losers in list(self._feed)[-room:] if room),
        )

    def _headline(self, scene: Scene) -> Text:
        """Return the most important current fact, in one sentence."""
        dying = next((step for step in scene.steps.values() if step.held and scene.agents[step.agent_id].killed), None)
        if dying is not None:
            name, left = scene.name(dying.agent_id), dying.seconds_left
            told = f"{name} was killed (kill -9) during {scene.about(dying)}; its lease ends in {left} s."
            return Text(told, style="bold red")
        if self._turn is not None and time.monotonic() < self._turn[0]:
            moment = self._turn[1]
            return Text(f"{moment.text[:1].upper()}{moment.text[1:]}.", style=_SIGNS[moment.kind][1])
        waiting = len(scene.open_gates())
        if waiting:
            return Text(f"{waiting} finished scripts wait for a human; the demo plays one, and approves.", style="blue")
        if not scene.episodes:
            return Text("Every agent starts as a process of its own and follows the event stream.", style="dim")
        return Text("All episodes are finished." if scene.complete else _RACING, style="dim")


def _grid(scene: Scene) -> Table:
    """Draw the grid: episodes as rows, tasks as columns."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("episode with", no_wrap=True)
    for title in (*scene.titles.values(), "approval"):
        grid.add_column(title, no_wrap=True, min_width=10)
    for guest in scene.episodes.values():
        steps = [scene.steps[guest, plan_task] for plan_task in scene.titles]
        grid.add_row(Text(guest), *(_cell(scene, step) for step in steps), _gate(steps[-1]))
    return grid


def _cell(scene: Scene, step: Step) -> Text:
    name = scene.name(step.agent_id)
    if step.held and scene.agents[step.agent_id].killed:
        return Text(f"✗ {name} {step.seconds_left}s", style="bold red")
    if step.held:
        return Text(f"● {name} {step.seconds_left}s", style="yellow")
    if step.state == "completed":
        return Text(f"✓ {name}", style="green")
    if step.state == "available":
        return Text("○ open", style="cyan")
    return Text("·", style="bright_black")


def _gate(step: Step) -> Text:
    if step.approved:
        return Text("◆ approved", style="green")
    return Text("◇ waiting", style="bold blue") if step.gate_id else Text("·", style="bright_black")


def _progress(scene: Scene) -> Text:
    """Draw the tasks by state, as a bar and in numbers."""
    counts, total = scene.counts(), len(scene.steps)
    if not total:
        return Text("the episodes begin when every agent is there", style="bright_black")
    bar = Text()
    for state, colour in _STATES[:3]:
        bar.append("━" * round(_BAR * counts[state] / total), style=colour)
    bar.append("━" * (_BAR - len(bar)), style="bright_black")
    waiting = counts["waiting"] + counts["created"]
    bar.append(f"  {total} tasks: ", style="dim")
    for label, count, colour in (
        ("done", counts["completed"], "green"),
        ("in work", counts["working"], "yellow"),
        ("open", counts["available"], "cyan"),
        ("to come", waiting, "bright_black"),
    ):
        bar.append(f"{count} {label}  ", style=colour)
    bar.rstrip()
    return bar


def _agents(scene: Scene) -> Table:
    """Draw the wins and misses by role."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("role", no_wrap=True)
    roles: dict[str, list[Agent]] = {}
    for agent in scene.agents.values():
        roles.setdefault(agent.role, []).append(agent)
    for place in range(max(map(len, roles.values()), default=0)):
        table.add_column("races won : missed" if place == 0 else "", no_wrap=True, min_width=12)
    for role, agents in roles.items():
        table.add_row(role, *(Text.assemble(*_score(agent)) for agent in agents))
    return table


def _score(agent: Agent) -> Iterator[tuple[str, str]]:
    yield f"{agent.name} ", "strike red" if agent.killed else "bold"
    yield str(agent.won), "green" if agent.won else "bright_black"
    yield " : ", "bright_black"
    yield str(agent.missed), "bright_black"


def _line(moment: Moment, losers: list[str]) -> Text:
    sign, style = _SIGNS[moment.kind]
    line = Text(f"{sign} {moment.text}", style=style, no_wrap=True, overflow="ellipsis")
    if losers:
        line.append(f"   missed by {', '.join(losers)}", style="bright_black")
    return line
