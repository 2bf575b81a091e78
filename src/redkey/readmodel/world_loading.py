"""Loading a world from its rows, as of the head of its ledger.

The cost is that of the live work: ended tasks are read from their rows when they are asked for.
"""

from __future__ import annotations

from sys import intern

import msgspec

from redkey.ledger.ports import Reader
from redkey.plans.structure import read_structure
from redkey.readmodel.moments import since
from redkey.readmodel.request_keys import load_window
from redkey.readmodel.rows import LIVE_STATES, entity, message_list, pages, row_pages, task_list
from redkey.readmodel.structure import pinned
from redkey.reducers.entities import Task
from redkey.reducers.run import Run
from redkey.reducers.steps import ACTIVE
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, TOMBSTONE_NANOSECONDS, World

_TASKS = msgspec.json.Decoder(list[Task])


def load_world(reader: Reader, topic: str) -> World:
    """Load the world of a topic, as of its head, from its rows."""
    world = World()
    head = reader.head(topic)
    world.sequence, world.timestamp = head.sequence, head.timestamp
    row = reader.row(topic, "workspace", "")
    if row is None:
        return world
    world.workspace = entity(row)
    for agent in pages(reader, topic, "agent"):
        world.agents[agent.agent_id] = agent
        world.slugs[agent.slug] = agent.agent_id
        if agent.active and not agent.lost:
            world.at(agent.last_act_at + LOST_AFTER_NANOSECONDS, "lost", agent.agent_id)
    for role in pages(reader, topic, "role"):
        (world.removed_roles if role.removed_at else world.roles)[role.role_id] = role
    world.queues = {queue.queue_id: queue for queue in pages(reader, topic, "queue")}
    world.projects = {project.project_id: project for project in pages(reader, topic, "project")}
    world.phases = {phase.phase_id: phase for phase in pages(reader, topic, "phase")}
    world.keys = {key.key_id: key for key in pages(reader, topic, "key")}
    world.parties = {party.payer: party for party in pages(reader, topic, "party", "present")}
    for to in ("human", *(f"agent:{agent_id}" for agent_id in world.agents)):
        for message in pages(reader, topic, "message", message_list(to, read=False)):
            world.messages[message.message_id] = message
    world.definitions = {one.definition_id: one for one in pages(reader, topic, "definition")}
    _load_tasks(world, reader, topic)
    _load_runs(world, reader, topic)
    load_window(world, reader, topic)
    # Tasks come before their runs, which may be paused.
    world.trim_offers()
    return world


def _load_tasks(world: World, reader: Reader, topic: str) -> None:
    for queue_id in world.queues:
        for state in LIVE_STATES:
            for page in row_pages(reader, topic, "task", task_list(queue_id, state)):
                # One array is decoded faster than a thousand objects.
                tasks = _TASKS.decode(b"[%b]" % b",".join([row.body for row in page]))
                for task in tasks:
                    # Values that thousands of tasks have in common are stored once.
                    task.state, task.queue_id, task.context_id = state, queue_id, intern(task.context_id)
                    world.tasks[task.task_id] = task
                    if task.claim_id or task.deadline_at or task.opens_at or task.waits_for or task.blocked_by:
                        _place_links(world, task)
                    if task.expired_claim_id:
                        world.expired[task.expired_claim_id] = task.task_id
                if state == "available":
                    world.load_offers(queue_id, tasks)
    _load_tombstones(world, reader, topic)


def _place_links(world: World, task: Task) -> None:
    """Add a task's times, claim and dependencies to a world that is being loaded."""
    if task.deadline_at:
        world.at(task.deadline_at, "deadline", task.task_id)
    if task.opens_at and task.state == "created":
        world.at(task.opens_at, "opens", task.task_id)
    if task.claim_id:
        world.claims[task.claim_id] = task.task_id
        if task.lease_expires_at:
            world.at(task.lease_expires_at, "lease", task.task_id)
    for dependency in (*task.waits_for, *task.blocked_by):
        world.dependents.setdefault(dependency, []).append(task.task_id)


def _load_runs(world: World, reader: Reader, topic: str) -> None:
    for gate in pages(reader, topic, "gate", "open"):
        world.gates[gate.gate_id] = gate
        if gate.deadline_at and not gate.reminded:
            world.at(gate.deadline_at, "gate", gate.gate_id)
        row = reader.row(topic, "task", gate.task_id)
        if row is not None:
            world.tasks.setdefault(gate.task_id, entity(row))
    for workflow in pages(reader, topic, "workflow", "live"):
        plan = read_structure(pinned(reader, topic, workflow.structure_sha256))
        run = Run(workflow, plan, pages(reader, topic, "step", workflow.workflow_id))
        open_tasks = (world.tasks.get(step.task_id) for step in run.steps if step.state == "open")
        run.active = sum(task is not None and task.state in ACTIVE for task in open_tasks)
        run.active += sum(step.state == "opening" for step in run.steps)
        world.runs[workflow.workflow_id] = run
    if any(run.workflow.extras for run in world.runs.values()):
        for task in world.tasks.values():
            if (beside := world.run_beside(task)) is not None and (not task.ended_at or task.gate is not None):
                beside.extras.add(task.task_id)


def _load_tombstones(world: World, reader: Reader, topic: str) -> None:
    """Load the tasks that ended recently and are still in the world, from the last records."""
    ended: list[Task] = []
    for record in since(reader, topic, world.timestamp - TOMBSTONE_NANOSECONDS, b'"terminal":true'):
        wire = msgspec.json.decode(record.wire)
        task_id = wire["stream"]["stream_id"].split(":")[1]
        row = reader.row(topic, "task", task_id)
        task = entity(row) if row is not None and task_id not in world.tasks else None
        if task is not None and task.ended_at:
            world.tasks[task_id] = task
            ended.append(task)
    for task in sorted(ended, key=lambda task: task.ended_at):
        world.add_tombstone(task)
