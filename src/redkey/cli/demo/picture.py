"""The picture: the scene on a terminal, drawn again a few times a second."""

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
    "missed": ("○", "bright_black"),
    "killed": ("✗", "bold red"),
    "expired": ("↻", "magenta"),
    "done": ("✓", "green"),
    "gate": ("◇", "blue"),
    "approved": ("◆", "green"),
    "finished": ("★", "bold green"),
}
_STATES = (("completed", "green"), ("working", "yellow"), ("available", "cyan"), ("created", "bright_black"))
_BAR = 32
# What the grid, the agents and the headings take; what is left of the window is for the feed.
_OTHER_LINES = 21
_MOST_FEED = 9


class Picture:
    """Draws the scene in place, with the last moments below it."""

    def __init__(self, console: Console) -> None:
        self._began = time.monotonic()
        self._feed: deque[Moment] = deque(maxlen=_MOST_FEED)
        self._headline = Text("Agents get ready.", style="dim")
        self._scene: Scene | None = None
        self._live = Live(self, console=console, refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._live.stop()

    def tell(self, moment: Moment) -> None:
        """Put a moment into the feed; what changes the story becomes the headline."""
        self._feed.append(moment)
        told = _HEADLINES.get(moment.kind)
        if told is not None:
            self._headline = Text(told.format(moment.text[:1].upper() + moment.text[1:]), style=_SIGNS[moment.kind][1])

    def draw(self, scene: Scene) -> None:
        self._scene = scene

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._scene is None:
            return
        scene, seconds = self._scene, time.monotonic() - self._began
        room = max(0, min(_MOST_FEED, console.size.height - _OTHER_LINES))
        head = Text.assemble(("RedKey", "bold red"), f"  {len(scene.agents)} agents race for the work of 6 podcasts  ")
        head.append(f"{seconds:4.1f} s", style="dim")
        yield Group(
            head,
            Text(),
            _grid(scene),
            Text(),
            _progress(scene),
            Text(),
            _agents(scene),
            Text(),
            self._headline,
            Rule(style="bright_black"),
            *(_line(moment) for moment in list(self._feed)[-room:] if room),
        )


_HEADLINES: dict[Kind, str] = {
    "won": "Everybody claims at once; the ledger's order decides. One wins, the others are told at once.",
    "killed": "{}. Nobody tells the server.",
    "expired": "{}.",
    "gate": "A human decides here: {}.",
    "finished": "{}.",
}


def _grid(scene: Scene) -> Table:
    """Episodes down, tasks across."""
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
    """Tasks by state, as a bar and in numbers."""
    counts, total = scene.counts(), max(1, len(scene.steps))
    bar = Text()
    for state, colour in _STATES[:3]:
        bar.append("━" * round(_BAR * counts[state] / total), style=colour)
    bar.append("━" * (_BAR - len(bar)), style="bright_black")
    waiting = counts["waiting"] + counts["created"]
    bar.append(f"  {len(scene.steps)} tasks: ", style="dim")
    for label, count, colour in (
        ("done", counts["completed"], "green"),
        ("in work", counts["working"], "yellow"),
        ("open", counts["available"], "cyan"),
        ("to come", waiting, "bright_black"),
    ):
        bar.append(f"{count} {label}  ", style=colour)
    return bar


def _agents(scene: Scene) -> Table:
    """Who won and who missed, by role."""
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


def _line(moment: Moment) -> Text:
    sign, style = _SIGNS[moment.kind]
    return Text(f"{sign} {moment.text}", style=style, no_wrap=True, overflow="ellipsis")
