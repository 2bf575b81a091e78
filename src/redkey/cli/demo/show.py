"""The show: six parallel episodes of the podcast plan, racing agents, one crash, and a human who approves."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from redkey.cli.demo.cast import GUESTS, QUEUE, plan, players
from redkey.cli.demo.scene import Moment, Scene, Step
from redkey.cli.demo.stage import DemoFailed, Stage
from redkey.client import RedKey

LEASE_SECONDS = 5
_READY_SECONDS = 120.0
# The agents, and the demo itself.
_FOLLOWERS = re.compile(r"^redkey_subscribers(?:{[^}]*})? ([0-9.]+)", re.MULTILINE)
# If the show takes longer, something is wrong.
_PATIENCE_SECONDS = 180.0
# How long the human reads a script, and how long after the start the crash happens.
_APPROVAL_SECONDS = 1.2
_CRASH_SECONDS = 0.4
_FRAME_SECONDS = 0.1
# The task during which an agent is killed.
_FATAL_TASK = "guest_research"


class Show:
    """Runs the demo on a stage. `tell` is called for every moment, `draw` a few times a second."""

    def __init__(
        self, stage: Stage, agents: int, seed: int, tell: Callable[[Moment], None], draw: Callable[[Scene], None]
    ) -> None:
        self.scene = Scene(plan())
        self._stage, self._agents, self._seed = stage, agents, seed
        self._tell, self._draw = tell, draw
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._approve_at: dict[str, float] = {}
        self._crash_at: tuple[float, str] | None = None
        self.victim = ""

    def run(self, rk: RedKey) -> None:
        """Run from an empty server to six finished episodes."""
        rk.queues.create("Podcast", id=QUEUE)
        self._send_in_agents(rk)
        self._listen(rk)
        self._wait_for_agents(rk)
        for guest in GUESTS:
            run = rk.workflows.start(QUEUE, plan=plan(), input={"guest": guest})
            self.scene.add_episode(run.workflow_id, guest)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.scene.complete:
            for event in self._heard():
                for moment in self.scene.hear(event):
                    self._tell(moment)
            self._act(rk)
            self._draw(self.scene)
            self._stage.check()
            if time.monotonic() > deadline:
                raise DemoFailed(f"not finished after {_PATIENCE_SECONDS:.0f} s; is the machine very busy?")
        self._draw(self.scene)

    def _send_in_agents(self, rk: RedKey) -> None:
        """Register every agent by its card, grant its role, and start its process."""
        cast = players(self._agents, self._seed)
        for role in dict.fromkeys(player.role for player in cast):
            rk.roles.create(role, id=role)
        for player in cast:
            made = rk.agents.register(card=player.card, issue_key=True)
            rk.roles.grant(player.role, made.agent_id)
            self.scene.add_agent(player.name, player.role, made.agent_id)
            self._stage.send_in(player, made.agent_id, made.api_key, self._seed, LEASE_SECONDS)
            self._draw(self.scene)

    def _wait_for_agents(self, rk: RedKey) -> None:
        """Wait until all agents are ready, for a fair race: the server counts the followers of its stream."""
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            found = _FOLLOWERS.search(rk.server.metrics())
            if found is not None and float(found[1]) > len(self.scene.agents):
                return
            self._draw(self.scene)
            self._stage.check()
            time.sleep(_FRAME_SECONDS)
        raise DemoFailed(f"the agents were not ready after {_READY_SECONDS:.0f} s; is the machine very busy?")

    def _listen(self, rk: RedKey) -> None:
        def follow() -> None:
            try:
                for event in rk.events.follow(after=0):
                    self._events.put(event)
            except BaseException as failure:
                self._events.put(failure)

        threading.Thread(target=follow, daemon=True).start()

    def _heard(self) -> Iterator[Any]:
        """Return the events of one frame."""
        until = time.monotonic() + _FRAME_SECONDS
        while (left := until - time.monotonic()) > 0:
            try:
                found = self._events.get(timeout=left)
            except queue.Empty:
                return
            if isinstance(found, BaseException):
                raise found
            yield found

    def _act(self, rk: RedKey) -> None:
        """Do the demo's own actions: kill one agent during its work, and approve like a human."""
        now = time.monotonic()
        if not self.victim:
            self._crash(rk, now)
        for step in self.scene.open_gates():
            if now >= self._approve_at.setdefault(step.gate_id, now + _APPROVAL_SECONDS):
                rk.gates.approve(step.gate_id, note="Good. Ship it.")
                step.approved = True

    def _crash(self, rk: RedKey, now: float) -> None:
        if self._crash_at is None:
            begun = next((step for step in self.scene.steps.values() if _is_fatal(step)), None)
            if begun is not None:
                self._crash_at = now + _CRASH_SECONDS, begun.agent_id
        elif now >= self._crash_at[0]:
            _, agent_id = self._crash_at
            self._crash_at = None
            # The agent may have finished, because on a busy machine the scene is late: ask the server. Otherwise use
            # the next task that starts.
            step = self.scene.held_by(agent_id)
            if step is not None and rk.tasks.get(step.task_id).state == "working":
                self.victim = agent_id
                self._stage.kill(agent_id)
                self._tell(self.scene.kill(agent_id))


def _is_fatal(step: Step) -> bool:
    return step.plan_task == _FATAL_TASK and step.state == "working"
