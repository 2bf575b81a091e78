"""What the submissions of a unit will read, known before the first one is decided.

Each read of a store across a network is a round trip, while the unit has the lock of its workspace. So the keys of all
requests are looked up together, with the tasks and documents that their decisions and replies will probably need. A
read that was not foreseen is done when it comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from redkey.commands.claims import ClaimNext, ClaimTask
from redkey.commands.command import Command
from redkey.commands.wanted import wanted
from redkey.ledger.ports import Unit
from redkey.ledger.prefetch import Prefetch
from redkey.readmodel.request_keys import SAME
from redkey.readmodel.rows import ANSWER, miss_key
from redkey.reducers.world import World, in_order
from redkey.services.answers import Answers, KeepAnswer
from redkey.services.documents import Documents
from redkey.services.ordered.messages import ProjectMessages
from redkey.services.submission import Submission
from redkey.services.unit_of_work import next_of
from redkey.wire.subjects import key_subject


def reads_of(
    unit: Unit, topic: str, world: World, batch: Sequence[Submission], answers: Answers, documents: Documents
) -> Prefetch:
    """Return what the submissions of a unit will read of its topic."""
    rows: dict[tuple[str, str], None] = {}
    subjects: dict[str, None] = {}
    hashes: dict[str, None] = {}
    claims: dict[str, int] = {}
    keeps = 0
    for submission in batch:
        command, idem = submission.command, submission.idem
        if command is None or type(command) is ProjectMessages:
            continue
        if type(command) is KeepAnswer:
            keeps += 1
            idem = command.idem
        if idem and answers.may_have(unit, topic, idem):
            rows[ANSWER, idem] = None
        if type(command) is KeepAnswer:
            continue
        if idem and world.keys_dropped and idem not in world.done:
            subjects[key_subject(idem)] = None
        rows.update(dict.fromkeys(_rows(world, command)))
        asked = command if type(command) is ClaimNext else next_of(command)
        if asked is not None:
            claims[asked.queue_id] = claims.get(asked.queue_id, 0) + asked.count
        elif type(command) is ClaimTask and (task := world.tasks.get(command.task_id)) is not None:
            hashes[task.content_sha256] = None
    for queue_id, count in claims.items():
        hashes.update(dict.fromkeys(islice(_offered(world, queue_id), count)))
    room = answers.room_reads(keeps) if keeps else Prefetch()
    return Prefetch(
        rows=[*rows],
        contents=[sha256 for sha256 in hashes if sha256 and documents.find(topic, sha256) is None],
        counters=room.counters,
        lists=room.lists,
        subjects=[*subjects],
        newest=SAME,
    )


def _rows(world: World, command: Command) -> Iterator[tuple[str, str]]:
    """Yield the rows that a decision needs of the past."""
    needs = wanted(world, command)
    if needs is None:
        return
    yield from (("task", task_id) for task_id in needs.tasks)
    if needs.last_miss is not None:
        yield "miss", miss_key(*needs.last_miss)
    named = (("message", needs.message_id), ("workflow", needs.workflow_id), ("gate", needs.gate_id))
    yield from ((kind, key) for kind, key in named if key)
    for artifact_id in needs.artifacts:
        yield "artifact", artifact_id
        yield "superseded", artifact_id


def _offered(world: World, queue_id: str) -> Iterator[str]:
    """Yield the documents of the tasks that a queue offers, in the order of their claims."""
    for entry in in_order([*world.heaps.get(queue_id, {}).values()]):
        if world.is_offer(entry) and (task := world.tasks.get(entry[2])) is not None:
            yield task.content_sha256
