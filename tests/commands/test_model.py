"""Commands compared with a simple model: hypothesis drives both, and they must agree after every step."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from redkey.commands.claims import (
    BlockClaim,
    ClaimNext,
    ClaimTask,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    ReleaseClaim,
    StartClaim,
)
from redkey.commands.decision import Refused
from redkey.commands.registry import DeactivateAgent, GrantRole, RevokeRole, UpdateAgent, UpdateQueue
from redkey.commands.tasks import CancelTask, CreateTask, RetryTask, UnblockTask
from redkey.services.past import LedgerPast
from tests.commands.oracle import Oracle
from tests.harness.desk import OUTCOMES, QUEUE, Desk, ref_of
from tests.harness.invariants import check_topic
from tests.harness.snapshot import snapshot

PRIORITIES = ("urgent", "high", "normal", "low")
ROLES = ("role_x", "role_y")
# Leases end at half past, time passes in whole steps: nothing ever happens in the very moment.
leases = st.sampled_from([1, 5.5, 60.5, 900.5, 90_000]).map(int)


class Coordination(RuleBasedStateMachine):
    tasks: Bundle[str] = Bundle("tasks")
    claims: Bundle[str] = Bundle("claims")

    @initialize()
    def begin(self) -> None:
        self.desk, self.oracle = Desk(), Oracle()
        self.agents = [self.desk.agent(slug, *ROLES) for slug in ("ada", "bob", "cleo")]
        self.oracle.roles = {agent: set(ROLES) for agent in self.agents}

    def _try(self, command: Any) -> bool:
        """Return True if the command succeeded, False if the current state refused it."""
        try:
            answer = self.desk.do(command).answer or {}
            return answer.get("state") not in ("lease_lost", "completed", "failed")
        except Refused as refused:
            if refused.status != 409:
                raise
            return False

    @rule(
        target=tasks,
        roles=st.sets(st.sampled_from(ROLES), max_size=2),
        attempts=st.integers(1, 3),
        priority=st.integers(0, 3),
        waits_for=st.lists(tasks, max_size=2, unique=True),
    )
    def create(self, roles: set[str], attempts: int, priority: int, waits_for: list[str]) -> str:
        task_id = "task_" + self.desk.ids.ulid()
        command = CreateTask(
            task_id,
            QUEUE,
            ref_of(task_id),
            PRIORITIES[priority],
            roles=tuple(sorted(roles)),
            waits_for=tuple(name for name in waits_for if name in self.desk.world.tasks),
            max_attempts=attempts,
        )
        self.desk.do(command)
        self.oracle.create(task_id, frozenset(roles), attempts, set(command.waits_for), priority)
        return task_id

    @rule(target=claims, task=tasks, agent=st.integers(0, 2), lease=leases)
    def claim(self, task: str, agent: int, lease: int) -> str:
        agent_id = self.agents[agent]
        expected = self.oracle.verdict(task, agent_id, lease)
        # What time has brought is recorded first: it is not of this claim.
        self.desk.tick()
        before = self.desk.world.sequence
        outcome = self.desk.do(ClaimTask(task, agent_id, lease))
        if expected == "held":
            assert outcome.answer == {"held": self.oracle.tasks[task].claim}
            return self.oracle.tasks[task].claim
        if expected == "completed_by_you":
            assert outcome.answer == {"reason": expected, "detail": self.oracle.tasks[task].winner}
            return self.oracle.tasks[task].winner
        settled = outcome.first(*OUTCOMES)
        assert settled is not None
        kind, payload = settled.wire["type"], settled.wire["payload"]
        if expected == "claimed":
            assert kind == "task.claimed", payload
            self.oracle.claim(task, agent_id, payload["claim_id"], lease)
            return str(payload["claim_id"])
        told = (self.oracle.tasks[task].attempt, expected, self.oracle.detail(task, agent_id, expected))
        again = self.oracle.told.get((task, agent_id)) == told
        assert (self.desk.world.sequence == before) == again, (expected, "told again" if again else "told first")
        self.oracle.told[task, agent_id] = told
        if expected.startswith("missed:"):
            assert (kind, payload["winning_claim_id"]) == ("task.claim_missed", expected[7:])
        else:
            assert (kind, payload["reason"]) == ("task.claim_rejected", expected)
        return str(payload["claim_id"])

    @rule(target=claims, agent=st.integers(0, 2))
    def claim_next(self, agent: int) -> str:
        agent_id = self.agents[agent]
        outcome = self.desk.do(ClaimNext(QUEUE, agent_id, 60))
        if agent_id in self.oracle.inactive:
            assert outcome.answer == {"status": "rejected", "reason": "inactive_agent"}
            return ""
        best = self.oracle.best(agent_id)
        claimed = outcome.first("task.claimed")
        if best is None:
            assert outcome.answer == {"status": "no_tasks"}
            return ""
        assert claimed is not None
        assert claimed.wire["stream"]["stream_id"].split(":")[1] == best
        claim_id: str = claimed.wire["payload"]["claim_id"]
        self.oracle.claim(best, agent_id, claim_id, 60)
        return claim_id

    @rule(claim=claims, act=st.sampled_from(["start", "heartbeat", "release", "block", "complete", "fail"]))
    def act(self, claim: str, act: str) -> None:
        if not claim:
            return
        commands = {
            "start": StartClaim(claim),
            "heartbeat": HeartbeatClaim(claim),
            "release": ReleaseClaim(claim),
            "block": BlockClaim(claim, "auth", ref_of("why")),
            "complete": CompleteClaim(claim),
            "fail": FailClaim(claim, "error"),
        }
        done = self._try(commands[act])
        if act == "heartbeat" and self._is_cancelled(claim):
            return
        assert done == getattr(self.oracle, act)(claim), act

    def _is_cancelled(self, claim: str) -> bool:
        past = LedgerPast(self.desk.store, self.desk.topic).claim(claim)
        task = self.oracle.tasks.get(past.task_id) if past is not None else None
        return task is not None and task.state == "cancelled"

    @rule(task=tasks, act=st.sampled_from(["cancel", "retry", "unblock"]))
    def own(self, task: str, act: str) -> None:
        command = {"cancel": CancelTask(task), "retry": RetryTask(task), "unblock": UnblockTask(task)}[act]
        assert self._try(command) == getattr(self.oracle, act)(task), act

    @rule(seconds=st.sampled_from([1, 4, 6, 31, 61, 455, 901, 2000]))
    def wait(self, seconds: int) -> None:
        # A little more each time, so that no step meets the end of a lease in the very moment.
        self.desk.tick(seconds + 0.013)
        self.oracle.advance(seconds + 0.013)

    @rule(agent=st.integers(0, 2))
    def switch(self, agent: int) -> None:
        agent_id = self.agents[agent]
        if agent_id in self.oracle.inactive:
            self.desk.do(UpdateAgent(agent_id, active=True))
            self.oracle.inactive.remove(agent_id)
        else:
            self.desk.do(DeactivateAgent(agent_id))
            self.oracle.inactive.add(agent_id)

    @rule(agent=st.integers(0, 2), role=st.sampled_from(ROLES))
    def grant(self, agent: int, role: str) -> None:
        agent_id = self.agents[agent]
        held = role in self.oracle.roles[agent_id]
        self.desk.do(RevokeRole(role, agent_id) if held else GrantRole(role, agent_id))
        self.oracle.roles[agent_id] ^= {role}

    @rule()
    def pause(self) -> None:
        self.oracle.paused = not self.oracle.paused
        self.desk.do(UpdateQueue(QUEUE, {"paused": self.oracle.paused}))

    @rule()
    def restart(self) -> None:
        lived = snapshot(self.desk.world)
        self.desk.reload()
        assert snapshot(self.desk.world) == lived

    @invariant()
    def tell_the_same_story(self) -> None:
        for name, task in self.oracle.tasks.items():
            found = self.desk.world.tasks.get(name)
            if found is None:
                assert task.state in ("completed", "failed", "cancelled")
                continue
            seen = (found.state, found.attempt, found.claim_id, found.agent_id, found.lease_losses)
            assert seen == (task.state, task.attempt, task.claim, task.holder, task.losses), name
            assert set(found.waits_for) == task.waits_for or task.state != "created"
        for agent_id in self.agents:
            held = sum(task.holder == agent_id for task in self.oracle.tasks.values())
            assert self.desk.world.agents[agent_id].live_claims == held

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            check_topic(self.desk.store, self.desk.topic)


TestCoordination = Coordination.TestCase
TestCoordination.settings = settings(stateful_step_count=50)
