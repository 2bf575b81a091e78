"""The scene: the state of every episode, task, agent and approval, folded from the events of the stream.

The demo shows only this state; agents report nothing to it directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

Kind = Literal["won", "moved", "missed", "killed", "expired", "done", "gate", "approved", "finished"]


@dataclass(slots=True)
class Step:
    """One task of one episode."""

    guest: str
    plan_task: str
    task_id: str = ""
    state: str = "waiting"
    agent_id: str = ""
    lease_expires_at: str = ""
    # The gate that its completion opened, and whether it was approved.
    gate_id: str = ""
    approved: bool = False

    @property
    def seconds_left(self) -> int:
        """Return the remaining whole seconds of the lease."""
        if not self.lease_expires_at:
            return 0
        left = datetime.fromisoformat(self.lease_expires_at) - datetime.now(UTC)
        return max(0, round(left.total_seconds()))

    @property
    def held(self) -> bool:
        return self.state in ("claimed", "working")


@dataclass(frozen=True, slots=True)
class Race:
    """A race with a winner and a loser, for the receipt at the end."""

    event_id: str
    winner: str
    loser: str


@dataclass(slots=True)
class Agent:
    """One agent and the outcomes of its claims."""

    name: str
    role: str
    agent_id: str
    won: int = 0
    missed: int = 0
    killed: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """An event worth showing."""

    kind: Kind
    text: str
    # The claim of the moment, or the claim that won against the agent, and the agent.
    claim_id: str = ""
    agent: str = ""


class Scene:
    """Everything that the demo shows."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.titles = {task["id"]: _short(task["id"]) for task in plan["tasks"]}
        self.agents: dict[str, Agent] = {}
        self.episodes: dict[str, str] = {}
        self.steps: dict[tuple[str, str], Step] = {}
        self.finished: set[str] = set()
        self.races: list[Race] = []
        self._tasks: dict[str, Step] = {}
        self._gates: dict[str, Step] = {}
        self._wins: dict[str, str] = {}
        self.lost_leases: set[str] = set()

    def add_agent(self, name: str, role: str, agent_id: str) -> None:
        self.agents[agent_id] = Agent(name, role, agent_id)

    def add_episode(self, workflow_id: str, guest: str) -> None:
        self.episodes[workflow_id] = guest
        for plan_task in self.titles:
            self.steps[guest, plan_task] = Step(guest, plan_task)

    @property
    def complete(self) -> bool:
        return bool(self.episodes) and len(self.finished) == len(self.episodes)

    def counts(self) -> Counter[str]:
        """Count the tasks by state."""
        return Counter("working" if step.held else step.state for step in self.steps.values())

    def open_gates(self) -> list[Step]:
        return [step for step in self.steps.values() if step.gate_id and not step.approved]

    def held_by(self, agent_id: str) -> Step | None:
        return next((step for step in self.steps.values() if step.held and step.agent_id == agent_id), None)

    def name(self, agent_id: str) -> str:
        return self.agents[agent_id].name if agent_id in self.agents else agent_id

    def about(self, step: Step) -> str:
        return f"{self.titles[step.plan_task]} for {step.guest}"

    def kill(self, agent_id: str) -> Moment:
        """Record that an agent was killed: only the demo knows it, and the server notices when the lease expires."""
        self.agents[agent_id].killed = True
        step = self.held_by(agent_id)
        what = self.about(step) if step else "nothing"
        return Moment("killed", f"{self.name(agent_id)} was killed (kill -9) while it held {what}")

    def hear(self, event: Any) -> Iterator[Moment]:
        """Fold one event; return the moment to show, if any."""
        data: dict[str, Any] = event.data
        handler = _HANDLERS.get(event.type)
        step = self._tasks.get(data.get("taskId", "")) or self._gates.get(data.get("gateId", ""))
        if event.type == "task.created":
            self._created(data)
        elif event.type == "workflow.completed" and data.get("workflowId") in self.episodes:
            guest = self.episodes[data["workflowId"]]
            self.finished.add(guest)
            yield Moment("finished", f"the episode with {guest} is finished")
        elif handler is not None and step is not None:
            moment = handler(self, step, data, event)
            if moment is not None:
                yield moment

    def _created(self, data: dict[str, Any]) -> None:
        guest = self.episodes.get(data.get("workflowId", ""))
        if guest is not None:
            step = self.steps[guest, data["planTask"]]
            step.task_id, step.state = data["taskId"], "created"
            self._tasks[step.task_id] = step

    def _available(self, step: Step, data: dict[str, Any], event: Any) -> None:
        step.state, step.agent_id, step.lease_expires_at = "available", "", ""

    def _claimed(self, step: Step, data: dict[str, Any], event: Any) -> Moment:
        agent = self.agents[data["agentId"]]
        agent.won += 1
        step.state, step.agent_id, step.lease_expires_at = "claimed", agent.agent_id, data.get("leaseExpiresAt", "")
        self._wins[data["claimId"]] = event.event_id
        if step.task_id in self.lost_leases:
            return Moment(
                "moved", f"{agent.name} won {self.about(step)}: the work moved on", data["claimId"], agent.name
            )
        return Moment("won", f"{agent.name} won {self.about(step)}", data["claimId"], agent.name)

    def _missed(self, step: Step, data: dict[str, Any], event: Any) -> Moment:
        agent = self.agents[data["agentId"]]
        agent.missed += 1
        won, winner = self._wins.get(data["winningClaimId"]), data["winningAgentId"]
        if won is not None:
            self.races.append(Race(won, winner, agent.agent_id))
        text = f"{agent.name} missed {self.about(step)}: {self.name(winner)} was first"
        return Moment("missed", text, data["winningClaimId"], agent.name)

    def _started(self, step: Step, data: dict[str, Any], event: Any) -> None:
        step.state = "working"

    def _extended(self, step: Step, data: dict[str, Any], event: Any) -> None:
        step.lease_expires_at = data["leaseExpiresAt"]

    def _expired(self, step: Step, data: dict[str, Any], event: Any) -> Moment:
        self.lost_leases.add(step.task_id)
        lost = self.name(step.agent_id)
        self._available(step, data, event)
        return Moment("expired", f"the lease of {lost} ran out: {self.about(step)} is open to others again")

    def _done(self, step: Step, data: dict[str, Any], event: Any) -> Moment:
        step.state, step.lease_expires_at = "completed", ""
        return Moment("done", f"{self.name(step.agent_id)} finished {self.about(step)}")

    def _gate_opened(self, step: Step, data: dict[str, Any], event: Any) -> Moment:
        step.gate_id = data["gateId"]
        self._gates[step.gate_id] = step
        return Moment("gate", f"the script for {step.guest} waits for a human's approval")

    def _gate_approved(self, step: Step, data: dict[str, Any], event: Any) -> Moment:
        step.approved = True
        return Moment("approved", f"the script for {step.guest} is approved")


_HANDLERS = {
    "task.available": Scene._available,
    "task.claimed": Scene._claimed,
    "task.claim_missed": Scene._missed,
    "task.started": Scene._started,
    "task.lease_extended": Scene._extended,
    "task.lease_expired": Scene._expired,
    "task.complete": Scene._done,
    "gate.opened": Scene._gate_opened,
    "gate.approved": Scene._gate_approved,
}


def _short(plan_task: str) -> str:
    """Return the verb of a task: `guest_research` as `research`, `draft_script` as `draft`."""
    first, _, last = plan_task.partition("_")
    return last if first == "guest" else first
