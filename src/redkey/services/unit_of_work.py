"""One unit of work over a topic: decides, folds and appends many requests, with everything that becomes due.

The world is changed in memory while the unit is open. The opener of the unit drops the world if the commit fails, so no
reader ever sees a world ahead of its commit. The store gets everything at the end, in `finish`: work that fails before
leaves no trace in it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimNext, CompleteClaim, FailClaim
from redkey.commands.command import Command
from redkey.commands.decide import decide
from redkey.commands.decision import Decision, Refused, key_expired, key_reused
from redkey.commands.draft import Draft, Ids, lighter, seal
from redkey.commands.due import due, follow_ups
from redkey.commands.past import NOTHING, Recalled
from redkey.commands.registry import EraseContent
from redkey.commands.wanted import wanted
from redkey.errors import Finding, RedKeyError
from redkey.ledger.ports import Content, Entry, Unit
from redkey.ledger.record import LOCAL_PAYER
from redkey.readmodel.request_keys import dropped_event
from redkey.readmodel.rows import take_rows
from redkey.readmodel.structure import pinned, read, structure_ref
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold
from redkey.reducers.world import World
from redkey.services import effects
from redkey.services.answers import KeepAnswer
from redkey.services.documents import Documents
from redkey.services.keys import check_key
from redkey.services.ordered.messages import ProjectMessages
from redkey.services.outcome import NO_TASKS, Outcome, Settled, closure, following, settled
from redkey.services.past import recall
from redkey.services.place import Place
from redkey.services.submission import Submission
from redkey.wire.envelope import AnyWire
from redkey.wire.events import AnyPayload, QueueClaimRequested, TaskClaimAttempted
from redkey.wire.payload import with_key
from redkey.wire.subjects import subjects
from redkey.wire.validate import WIRE_TOO_LARGE, encode

# Consequences of consequences end: each round opens at most what the one before it closed.
ROUNDS_LIMIT = 10_000
_ENDS = ("task.complete", "task.failed")
# What a claim of the next task begins with; the second where a network gives the order.
_CLAIMS = (TaskClaimAttempted, QueueClaimRequested)


class BrokenInvariant(RedKeyError):
    """Raised if RedKey wrote, or was about to write, what its own contracts refuse; the unit is given up."""

    code = "internal_error"


class TopicWork:
    """The work of one unit on one topic."""

    def __init__(
        self,
        unit: Unit,
        topic: str,
        world: World,
        ids: Ids,
        loaded_at: int | None = None,
        documents: Documents | None = None,
    ) -> None:
        self._unit, self._topic, self._world, self._ids = unit, topic, world, ids
        self._expected = world.sequence
        # The place up to which the world was loaded from rows; by default everything before this unit was.
        self._loaded_at = world.sequence if loaded_at is None else loaded_at
        # The rows to write, and what waiters should learn once this is committed.
        self.changes = Changes()
        self._timestamp = unit.next_timestamp(topic)
        # `records` in the ledger's form.
        self._entries: list[Entry] = []
        self.contents: dict[str, Content] = {}
        # Commands with side effects, once their records are appended.
        self._effects: list[Command] = []
        self.records: list[Settled] = []
        # The data that replies are made from.
        self.place = Place(unit, topic, world, self.contents, self._entries, self.records, documents or Documents())
        self.prepare()

    def prepare(self) -> None:
        """Set what a kind of unit needs beside this, at the end of its creation."""

    @property
    def now(self) -> int:
        return self._timestamp

    @property
    def workspace_id(self) -> str:
        return self._world.workspace.workspace_id

    def run(self, submission: Submission) -> Outcome:
        """Decide one submission and record its command and all consequences; Refused if it is not allowed.

        A submission without a command only records what time has made due.
        """
        command, caller, idem = submission.command, submission.caller, submission.idem
        if command is None or type(command) is KeepAnswer or type(command) is ProjectMessages:
            return Outcome()
        world = self._world
        key = world.keys.get(caller.key_id)
        if key is not None:
            check_key(key, caller)
        if idem:
            done = world.done.get(idem)
            if done is not None:
                if done.body != submission.body:
                    raise key_reused()
                return self._again(done.sequence, command)
            dropped = dropped_event(self._unit, self._topic, world, idem) if world.keys_dropped else ""
            if dropped:
                raise key_expired(dropped)
        has_effect = effects.has_effect(command)
        if has_effect:
            effects.check(self._unit, self._topic, command)
        decision = self.judge(command, caller)
        if decision.repeat:
            return Outcome([self._read(decision.repeat)], repeated=True)
        if not decision.drafts:
            return Outcome(answer=decision.answer)
        return self._carry_out(submission, command, decision.drafts, has_effect)

    def _carry_out(self, submission: Submission, command: Command, drafts: list[Draft], has_effect: bool) -> Outcome:
        """Record what was decided, and claim the next task if the command includes that."""
        caller = submission.caller
        outcome = Outcome(self._take(drafts, submission))
        if has_effect:
            self._effects.append(command)
            if type(command) is EraseContent:
                self.place.erased.add(command.sha256)
        asked = next_of(command)
        if asked is not None:
            ended = next(one.event for one in outcome.records if one.event.type in _ENDS)
            outcome.next = self._claim_next(asked, caller, ended.wire_id)
        return outcome

    def run_due(self) -> None:
        """Record what time has made due. Only here, so that a request and all its consequences follow each other."""
        for _ in range(ROUNDS_LIMIT):
            drafts = due(self._world, self.now)
            for draft in drafts:
                self._append(draft)
            self._world.drop_timers(self.now)
            if not drafts:
                return
        raise BrokenInvariant("the same event becomes due without end")

    def note(self, drafts: list[Draft]) -> list[Settled]:
        """Record facts of the log itself: they are not a caller's, so nothing can refuse them."""
        return self._record(drafts)

    def finish(self) -> None:
        """Pass everything to the unit: the commit that follows makes it durable together."""
        if not self.records:
            return
        if self._world.agenda or self._world.pending:
            raise BrokenInvariant("a unit ends with consequences that are not recorded")
        appended = self._unit.append(self._topic, self._entries, self._expected)
        if appended[-1].timestamp != self._timestamp - 1 or appended[-1].sequence != self._world.sequence:
            raise BrokenInvariant("the ledger gave records other places than they were decided for")
        self._unit.put_content(self._topic, self.contents.values())
        self._unit.put_rows(self._topic, take_rows(self._world, self.changes))
        for command in self._effects:
            effects.apply(self._unit, self._topic, command)

    def _take(self, drafts: list[Draft], submission: Submission) -> list[Settled]:
        """Record the drafts of a submission, under its key and with its content."""
        self._put_key(drafts, submission)
        if not submission.contents:
            return self._record(drafts)
        brought = {one.sha256: one for one in submission.contents if one.sha256 not in self.contents}
        self.contents.update(brought)
        try:
            return self._record(drafts)
        except Refused:
            for sha256 in brought:
                del self.contents[sha256]
            raise

    @staticmethod
    def _put_key(drafts: list[Draft], submission: Submission) -> None:
        """Give the request's own record its extensions and its idempotency key."""
        request = drafts[0] if len(drafts) == 1 else next((one for one in drafts if not one.leads), drafts[0])
        if submission.extensions:
            # Claims of several tasks are one request for each.
            for draft in drafts if type(request.payload) is TaskClaimAttempted else (request,):
                draft.extensions = {**(draft.extensions or {}), **submission.extensions}
                draft.inherits = False
        if submission.idem:
            request.payload = with_key(request.payload, submission.idem, submission.body)

    def judge(self, command: Command, caller: Actor) -> Decision:
        """Decide in the world that the command's own records will meet: what they end has left it."""
        world, now = self._world, self._timestamp
        decision = decide(world, command, caller, now, self._ids, self._recall(command))
        if decision.drafts and world.tombstones and world.tombstones[0][0] <= now:
            world.drop_ended_tasks(now, self.changes)
            decision = decide(world, command, caller, now, self._ids, self._recall(command))
        return decision

    def _recall(self, command: Command) -> Recalled:
        """Read the past that the decision needs."""
        needs = wanted(self._world, command)
        if needs is None:
            return NOTHING
        return recall(self._unit, self._topic, self._world, needs, self._loaded_at, self.changes.rows)

    def _claim_next(self, command: ClaimNext, caller: Actor, cause: str) -> Outcome:
        """Decide the claim that comes with the end of a hold.

        A repeat of it must follow from the records alone, so if it cannot be recorded, the reply is just `no_tasks`; a
        claim on its own gets the full reply.
        """
        decision = self.judge(command, caller)
        if not decision.drafts:
            return Outcome(answer=NO_TASKS)
        for draft in decision.drafts:
            draft.causation_id = cause
        records = self._record(decision.drafts)
        return Outcome(records)

    def _again(self, sequence: int, command: Command) -> Outcome:
        """Return the outcome of a repeated request: the same records, and so the same reply."""
        here = sequence - self._expected - 1
        records = following(self.records[here:]) if here >= 0 else closure(self._unit, self._topic, sequence)
        if next_of(command) is None:
            return Outcome(records, repeated=True)
        attempts = (index for index, one in enumerate(records) if type(one.event.payload) in _CLAIMS)
        first = next(attempts, len(records))
        claim = Outcome(records[first:], repeated=True) if first < len(records) else Outcome(answer=NO_TASKS)
        return Outcome(records[:first], next=claim, repeated=True)

    def _record(self, drafts: list[Draft]) -> list[Settled]:
        first = len(self.records)
        # A hold that is resumed comes first, but is not the cause of what the holder requested.
        request = drafts[0]
        if request.leads:
            request = next((draft for draft in drafts if not draft.leads), request)
        for draft in drafts[1:]:
            # Validated before anything is folded; the first is validated when it is appended. All attempts of one claim
            # are made from the world, so they fit as the first one does.
            if type(draft.payload) is TaskClaimAttempted:
                continue
            _, _, findings = self._fitted(draft)
            if findings:
                raise unfit(draft, findings[0])
        cause = ""
        for draft in drafts:
            draft.causation_id = draft.causation_id or cause
            self._append(draft, fresh=draft is drafts[0])
            if draft is request:
                cause = self.records[-1].event.wire_id
        self._follow_up()
        return self.records[first:]

    def _follow_up(self) -> None:
        """Record the consequences of the records so far, until there are none."""
        world = self._world
        for _ in range(ROUNDS_LIMIT):
            consequences = follow_ups(world) if world.agenda or world.pending else ()
            if not consequences:
                return
            for draft in consequences:
                self._append(draft)
        raise BrokenInvariant("the consequences do not end")

    def _append(self, draft: Draft, *, fresh: bool = False) -> None:
        world, timestamp = self._world, self._timestamp
        wire, message, findings = self._fitted(draft)
        if findings:
            self._refuse(draft, findings[0], fresh)
        structure = draft.structure or self._structure(wire.payload)
        void = fold(world, self.changes, wire, world.sequence + 1, timestamp, LOCAL_PAYER, structure)
        if void is not None:
            raise BrokenInvariant(f"the decided {draft.type} changes nothing: {void}")
        for one in draft.contents:
            self.contents.setdefault(one.sha256, one)
        self._timestamp += 1
        self._entries.append(Entry(message, wire.wire_id, subjects(wire)))
        self.records.append(Settled(wire, world.sequence, timestamp, void, len(message)))

    def _fitted(self, draft: Draft) -> tuple[AnyWire, bytes, list[Finding]]:
        """Return the wire of a draft, its bytes and its findings; omit optional parts if the wire is too large."""
        wire = seal(self._world, draft, self._timestamp, self._ids)
        message, findings = encode(wire)
        if findings and findings[-1].code == WIRE_TOO_LARGE and (less := lighter(draft)) is not None:
            return self._fitted(less)
        return wire, message, findings

    def _refuse(self, draft: Draft, finding: Finding, fresh: bool) -> NoReturn:
        """Raise for an invalid wire: a caller's request may not fit; once folding has begun, it is RedKey's fault."""
        if fresh:
            raise unfit(draft, finding)
        raise BrokenInvariant(f"a {draft.type} that its own schema refuses: {finding.message}")

    def _structure(self, payload: AnyPayload) -> dict[str, Any] | None:
        """Return content that the unit itself adds: it is not in the store yet."""
        sha256 = structure_ref(payload)
        if sha256 is None:
            return None
        content = self.contents.get(sha256)
        return read(content) if content is not None else pinned(self._unit, self._topic, sha256)

    def _read(self, sequence: int) -> Settled:
        here = sequence - self._expected - 1
        return self.records[here] if here >= 0 else settled(self._unit.read(self._topic, sequence - 1, 1)[0])


def next_of(command: Command) -> ClaimNext | None:
    """Return the claim that a command requests for after the end of its hold."""
    return command.claim_next if type(command) is CompleteClaim or type(command) is FailClaim else None


def unfit(draft: Draft, finding: Finding) -> Refused:
    """Return the refusal of a caller's request that does not fit a wire."""
    if finding.code == WIRE_TOO_LARGE and draft.extensions:
        return Refused(422, finding.code, f"{finding.message}; send smaller extensions", "/extensions")
    return Refused(422, finding.code, finding.message, finding.pointer)
