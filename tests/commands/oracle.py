"""A simple model of coordination with dicts and loops, without events or reducers; the real code must behave alike.

It is written from `design/api.md` alone and is meant to be read in one go. Time is in seconds; tasks, agents and
claims are named by whoever drives it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LEASE_LOSSES = 5
LIVE = ("created", "available", "claimed", "working", "blocked")


@dataclass
class Task:
    name: str
    roles: frozenset[str]
    max_attempts: int
    waits_for: set[str]
    priority: int
    born: int
    state: str = "created"
    attempt: int = 1
    holder: str = ""
    claim: str = ""
    lease: float = 0
    lease_ends: float = 0
    losses: int = 0
    # The last hold that expired, while nobody claimed since: (claim, agent, state).
    expired: tuple[str, str, str] | None = None
    winner: str = ""
    winning_agent: str = ""


@dataclass
class Oracle:
    now: float = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    roles: dict[str, set[str]] = field(default_factory=dict)
    inactive: set[str] = field(default_factory=set)
    paused: bool = False
    births: int = 0
    # (task, agent) -> its last outcome for this attempt.
    told: dict[tuple[str, str], tuple[int, str, str]] = field(default_factory=dict)

    # What time brings.

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for task in list(self.tasks.values()):
            if task.claim and task.lease_ends <= self.now:
                self._expire(task)

    def _expire(self, task: Task) -> None:
        task.expired = (task.claim, task.holder, task.state)
        task.claim = task.holder = ""
        task.state = "available"
        task.losses += 1
        if task.losses >= LEASE_LOSSES:
            self._fail(task, may_retry=True)

    # What owners do.

    def create(self, name: str, roles: frozenset[str], max_attempts: int, waits_for: set[str], priority: int) -> None:
        self.births += 1
        task = self.tasks[name] = Task(name, roles, max_attempts, set(waits_for), priority, self.births)
        self._open(task)

    def _open(self, task: Task) -> None:
        task.waits_for = {name for name in task.waits_for if self.tasks[name].state != "completed"}
        if any(self.tasks[name].state in ("failed", "cancelled") for name in task.waits_for):
            self._fail(task, may_retry=False)
        elif not task.waits_for:
            task.state = "available"

    def cancel(self, name: str) -> bool:
        task = self.tasks[name]
        if task.state not in LIVE:
            return False
        self._end(task, "cancelled")
        self._fail_dependents(task)
        return True

    def retry(self, name: str) -> bool:
        task = self.tasks[name]
        hopeless = any(self.tasks[other].state in ("failed", "cancelled") for other in task.waits_for)
        if task.state not in ("failed", "cancelled") or hopeless:
            return False
        self._again(task)
        return True

    def unblock(self, name: str) -> bool:
        task = self.tasks[name]
        if task.state != "blocked":
            return False
        task.state = "available"
        return True

    # What agents do.

    def verdict(self, name: str, agent: str, lease: float) -> str:
        """Return the expected outcome of a claim: `claimed`, `held`, `missed:<winner>`, or why it is rejected."""
        task = self.tasks[name]
        if task.claim and task.holder == agent:
            return "held"
        if agent in self.inactive:
            return "inactive_agent"
        if not task.roles <= self.roles[agent]:
            return "missing_role"
        if not 5 <= lease <= 86_400:
            return "invalid_lease"
        if task.state == "created":
            return "dependency_unsatisfied"
        if task.state in ("blocked", "failed", "cancelled"):
            return "task_not_available"
        if task.state == "available":
            return "task_not_available" if self.paused else "claimed"
        if task.state == "completed" and task.winning_agent == agent:
            return "completed_by_you"
        return f"missed:{task.winner}"

    def detail(self, name: str, agent: str, verdict: str) -> str:
        """Return the detail of a refusal; a refusal with another detail is recorded again."""
        task = self.tasks[name]
        if verdict == "missing_role":
            return min(task.roles - self.roles[agent])
        if verdict == "task_not_available":
            return "paused" if task.state == "available" else task.state
        return min(task.waits_for) if verdict == "dependency_unsatisfied" and task.waits_for else ""

    def claim(self, name: str, agent: str, claim: str, lease: float) -> None:
        task = self.tasks[name]
        task.state, task.holder, task.claim, task.winner = "claimed", agent, claim, claim
        task.lease, task.lease_ends, task.expired = lease, self.now + lease, None
        task.winning_agent = agent

    def best(self, agent: str) -> str | None:
        able = [t for t in self.tasks.values() if t.state == "available" and t.roles <= self.roles[agent]]
        if self.paused or not able:
            return None
        return min(able, key=lambda task: (task.priority, task.born)).name

    def holds(self, claim: str, *, releases: bool = False) -> Task | None:
        """Return the task that a claim holds or may resume; it is resumed here, as any call does.

        An agent that was deactivated may only release what it holds.
        """
        for task in self.tasks.values():
            if task.claim == claim:
                return None if task.holder in self.inactive and not releases else task
            if task.state == "available" and task.expired is not None and task.expired[0] == claim:
                if task.expired[1] in self.inactive:
                    return None
                _, task.holder, task.state = task.expired
                task.claim, task.expired = claim, None
                task.losses -= 1
                task.lease_ends = self.now + task.lease
                return task
        return None

    def start(self, claim: str) -> bool:
        if any(t.state == "working" and t.claim == claim for t in self.tasks.values()):
            return False
        if any(
            t.expired is not None and t.expired[0] == claim and t.expired[2] == "working" for t in self.tasks.values()
        ):
            return False
        task = self.holds(claim)
        if task is None:
            return False
        task.state = "working"
        return True

    def heartbeat(self, claim: str) -> bool:
        task = self.holds(claim)
        if task is None:
            return False
        if task.lease_ends - self.now < task.lease / 2:
            task.lease_ends = self.now + task.lease
        return True

    def release(self, claim: str) -> bool:
        task = self.holds(claim, releases=True)
        if task is None:
            return False
        task.state, task.claim, task.holder = "available", "", ""
        return True

    def block(self, claim: str) -> bool:
        task = self.holds(claim)
        if task is None:
            return False
        task.state, task.claim, task.holder = "blocked", "", ""
        return True

    def complete(self, claim: str) -> bool:
        task = self.holds(claim)
        if task is None:
            return False
        self._end(task, "completed")
        for other in self.tasks.values():
            if other.state == "created" and task.name in other.waits_for:
                self._open(other)
        return True

    def fail(self, claim: str) -> bool:
        task = self.holds(claim)
        if task is None:
            return False
        self._fail(task, may_retry=True)
        return True

    # How things end.

    def _fail(self, task: Task, *, may_retry: bool) -> None:
        self._end(task, "failed")
        if may_retry and task.attempt < task.max_attempts:
            self._again(task)
        else:
            self._fail_dependents(task)

    def _fail_dependents(self, task: Task) -> None:
        for other in list(self.tasks.values()):
            if other.state == "created" and task.name in other.waits_for:
                self._fail(other, may_retry=False)

    def _again(self, task: Task) -> None:
        self.births += 1
        task.attempt, task.losses, task.winner, task.born = task.attempt + 1, 0, "", self.births
        task.state = "created"
        self._open(task)

    def _end(self, task: Task, state: str) -> None:
        task.state, task.claim, task.holder, task.expired = state, "", "", None
