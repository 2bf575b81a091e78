"""The main screens of the command line, as files: `make screens` writes them anew, `test_screens.py` holds them.

A server gets a scene, always the same one. Each command is called as on a terminal of 40, 80 and 120 columns. What
differs from run to run (ids, times, ports, keys, hashes) is masked with signs of the same width, or set: ids are cut to
eight characters, and all that happened is five hours ago.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from rich.console import Console, RenderableType

from redkey.cli import screen, short_ids, status, task, top, workflow
from redkey.cli.session import slugs_of
from redkey.client import RedKey
from tests.cli.mistakes import invoke
from tests.harness.server import Server, serving

FOLDER = Path(__file__).parent / "screens"
PLAN = Path(__file__).resolve().parents[2] / "examples" / "podcast" / "plan.json"
WIDTHS = (40, 80, 120)
# Name of the file -> command; braces are names of the scene.
SCREENS = {
    "status": "status",
    "task-list": "task list",
    "task-list-completed": "task list --state completed --state failed",
    "task-show-open": "task show {open}",
    "task-show-held": "task show {held}",
    "task-show-done": "task show {done}",
    "task-explain": "task explain {open}",
    "task-result": "task result {done}",
    "task-messages": "task messages {done}",
    "queue-list": "queue list",
    "queue-show": "queue show jobs",
    "agent-list": "agent list",
    "agent-show": "agent show ada",
    "agent-history": "agent history ada",
    "role-list": "role list",
    "role-show": "role show writer",
    "workflow-list": "workflow list",
    "workflow-show": "workflow show {run}",
    "gate-list": "gate list",
    "gate-show": "gate show {gate}",
    "inbox-list": "inbox list",
    "key-list": "key list",
    "workspace-list": "workspace list",
    "workspace-policy": "workspace policy",
    "artifact-list": "artifact list {done}",
    "claim-refused": "claim take {held} --agent bo",
    "contract-list": "contract list",
    "top": "top --once",
    "usage-credits": "usage credits",
    "webhook-none": "webhook list",
    "project-list": "project list",
    "project-show": "project show paper",
    "person-none": "person list",
    "help": "--help",
    "config-show": "config show limits",
    "not-found": "task list --queue nope",
    "wrong-option": "task list --quue jobs",
}
# Live views: name of the file -> the frame that is drawn when nothing happens. They have no end without a terminal.
FRAMES: dict[str, Callable[[RedKey, dict[str, str]], RenderableType]] = {
    "watch-task": lambda rk, names: task._draw(rk, names["held"])[0],
    "watch-queue": lambda rk, names: task.live_tasks(rk, "queue_jobs"),
    "watch-workflow": lambda rk, names: workflow._draw(rk.workflows.state(names["run"]), slugs_of(rk))[0],
}
_MASKS = (
    (r"\b(?:[a-z]+_)?01[0-9A-HJKMNP-TV-Z]{6,24}\b", "#"),
    (r"\bagt_[0-7][0-9A-HJKMNP-TV-Z]{25}\b", "#"),
    (r"(?<=127\.0\.0\.1:)\d+", "#####"),
    (r"\brk_[0-9A-Za-z]+", "#"),
    (r"(?<=signed      )[\d,]+|(?<=events      )[\d,]+", "N"),
    (r"\b[0-9a-f]{64}\b", "#"),
    (r"(?m)(?<= )\d+ s$", "N s"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
)


class _Later(datetime):
    """Five hours and a half later, so that each run shows the same times."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return datetime.now(tz) + timedelta(hours=5, minutes=30)


def _scene(server: Server, account: dict[str, str]) -> dict[str, str]:
    """A queue with tasks in every state, agents, a run and an approval."""

    def does(words: str, **environment: str) -> str:
        result = invoke(*shlex.split(words), **{**account, **environment})
        assert result.exit_code == 0, (words, result.output)
        return result.stdout.strip()

    does("queue create jobs --description 'What the newsroom does'")
    does("role create writer")
    ada = json.loads(does("agent register ada --role writer --json"))["apiKey"]
    does("agent register bo --role writer")
    done = does("task create --queue jobs --role writer --title 'Write the intro of the show with Piers Gorman'")
    claim = does(f"claim take {done} --agent ada -q", REDKEY_API_KEY=ada)
    does(f"claim fail {claim} --reason 'The guest did not answer'", REDKEY_API_KEY=ada)
    if json.loads(does(f"task show {done} --json"))["state"] == "failed":
        does(f"task retry {done}")
    claim = does(f"claim take {done} --agent ada -q", REDKEY_API_KEY=ada)
    does(
        f"claim complete {claim} --summary 'Written in three versions.' --output '{{\"words\": 120}}'",
        REDKEY_API_KEY=ada,
    )
    held = does("task create --queue jobs --role writer --title 'Check the facts' --priority high --lease 36000")
    does(f"claim take {held} --agent ada", REDKEY_API_KEY=ada)
    opened = does(
        "task create --queue jobs --role editor --title 'Edit the sound of the whole episode, from its first minute'"
    )
    gated = does("task create --queue jobs --title 'Publish it' --gate")
    does(f"claim complete {does(f'claim take {gated} --agent ada -q', REDKEY_API_KEY=ada)}", REDKEY_API_KEY=ada)
    run = does(f"workflow start {PLAN} --queue jobs")
    does("project create Paper --id paper --description 'The weekly paper'")
    does("phase create paper Research --id research")
    does(f"task progress {held} 'Three of five sources read.' --percent 60", REDKEY_API_KEY=ada)
    return {"done": done, "held": held, "open": opened, "run": run, "gate": does("gate list -q").split()[0]}


def _eight(cell: str) -> str:
    found = short_ids._ID.fullmatch(cell)
    return cell if found is None else "#" * 8 if cell.startswith("agt_") else found["rest"][:8]


@contextmanager
def _as_on_a_terminal() -> Iterator[None]:
    def short(rows: Any) -> list[list[str]]:
        # Ids of agents are hashes: in each run others, in another order. The column beside them has their names.
        if all(row[0].startswith("agt_") for row in rows):
            rows = sorted(rows, key=lambda row: row[1])
        return [[_eight(cell) for cell in row] for row in rows]

    with (
        patch.object(screen, "on_terminal", lambda: True),
        patch.object(screen, "is_terminal", lambda stream: True),
        patch.object(screen, "datetime", _Later),
        patch.object(top, "datetime", _Later),
        patch.object(status, "_CLOCK_SECONDS", 86_400),
        patch.object(screen, "shorten", short),
    ):
        yield


def _masked(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "/data")
    for pattern, sign in _MASKS:
        text = re.sub(pattern, lambda found, sign=sign: sign * len(found[0]) if sign == "#" else sign, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def render() -> dict[str, str]:
    """Return every screen by the name of its file."""
    with TemporaryDirectory() as folder, serving(Path(folder)) as server:
        account = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
        names = _scene(server, account)
        found = {}
        with _as_on_a_terminal():
            for name, words in SCREENS.items():
                parts = []
                for width in WIDTHS:
                    result = invoke(*shlex.split(words.format(**names)), **{**account, "COLUMNS": str(width)})
                    shown = _masked(result.output, Path(folder))
                    parts.append(f"{f'-- {width} columns, exit {result.exit_code} '.ljust(width, '-')}\n{shown}")
                found[f"{name}.txt"] = f"$ redkey {words}\n{''.join(parts)}"
            with RedKey(server.url, server.key) as rk:
                for name, draw in FRAMES.items():
                    parts = [_frame(partial(draw, rk, names), width, Path(folder)) for width in WIDTHS]
                    found[f"{name}.txt"] = f"$ redkey {' '.join(name.split('-')[::-1])}\n{''.join(parts)}"
        return found


def _frame(draw: Callable[[], RenderableType], width: int, folder: Path) -> str:
    """One frame of a live view, in a window of this width."""
    with patch.dict(os.environ, {"COLUMNS": str(width)}):
        console = Console(width=width, highlight=False, file=io.StringIO(), record=True)
        console.print(draw())
    return f"{f'-- {width} columns '.ljust(width, '-')}\n{_masked(console.export_text(), folder)}"


def main() -> None:
    """Write the files anew."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for name, text in render().items():
        (FOLDER / name).write_text(text)
    sys.stdout.write(f"{len(SCREENS) + len(FRAMES)} screens at {len(WIDTHS)} widths in {FOLDER}\n")


if __name__ == "__main__":
    main()
