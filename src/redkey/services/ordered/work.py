"""Requests in a workspace that is ordered by a network: decided here, submitted there, answered by what became of them.

A request passes two units. The first decides it by the world as far as it is known, stores its content, and gives the
wires to submit. The second comes once every message up to its own is projected, and makes the outcome from the records:
the order may have brought something else in between, and then the request is judged anew for its answer.
"""

from __future__ import annotations

from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimNext, acting_agent, request_next
from redkey.commands.command import Command
from redkey.commands.decide import decide
from redkey.commands.decision import Decision, Refused
from redkey.commands.draft import Draft
from redkey.commands.registry import CreateKey
from redkey.services import effects
from redkey.services.answers import KeepAnswer
from redkey.services.ordered.messages import MessageRow, ProjectMessages, message_at
from redkey.services.ordered.projection import Projection
from redkey.services.outcome import NO_TASKS, Outcome, Settled, closure, following
from redkey.services.submission import Submission
from redkey.services.unit_of_work import next_of, unfit


class OrderedWork(Projection):
    """What one unit does for the requests of an ordered workspace."""

    def judge(self, command: Command, caller: Actor) -> Decision:
        """Decide in the world as it is: only messages change it, so nothing leaves it for a decision."""
        return decide(self._world, command, caller, self._timestamp, self._ids, self._recall(command))

    def _carry_out(self, submission: Submission, command: Command, drafts: list[Draft], has_effect: bool) -> Outcome:
        """Give the wires to submit, and store what must be there before they are: content, and the hash of a key."""
        # What follows from others is derived where it stands, by every reader.
        requests = [draft for draft in drafts if draft.sender != "system"]
        self._put_key(requests, submission)
        asked = next_of(command)
        if asked is not None:
            # Judged at its place: the hold that ends with this command is over then.
            agent = acting_agent(self._world, submission.caller, asked.agent_id)
            requests.append(request_next(self._world, asked, agent, submission.caller))
        outgoing: list[tuple[str, bytes]] = []
        request, cause = next((draft for draft in requests if not draft.leads), requests[0]), ""
        for draft in requests:
            draft.causation_id = draft.causation_id or cause
            wire, message, findings = self._fitted(draft)
            if findings:
                raise unfit(draft, findings[0])
            outgoing.append((wire.wire_id, message))
            cause = wire.wire_id if draft is request else cause
        for one in (*submission.contents, *(one for draft in requests for one in draft.contents)):
            self.contents.setdefault(one.sha256, one)
        if isinstance(command, CreateKey):
            effects.apply(self._unit, self._topic, command)
        return Outcome(outgoing=tuple(outgoing))

    def answer(self, submission: Submission) -> Outcome:
        """The outcome of a request whose messages are all projected; Refused if the order left nothing of it."""
        command = submission.command
        if command is None or type(command) is KeepAnswer or type(command) is ProjectMessages:
            return Outcome()
        messages = [self._message(sequence) for sequence in submission.sent]
        asked, following_claim = next_of(command), None
        if asked is not None:
            following_claim = messages.pop()
        records: list[Settled] = []
        for message in messages:
            if message.void:
                return self._void(submission, command, message)
            records += self._records_of(message)
        if effects.has_effect(command) and not isinstance(command, CreateKey):
            effects.apply(self._unit, self._topic, command)
        outcome = Outcome(records)
        if following_claim is not None:
            outcome.next = (
                Outcome(answer=NO_TASKS) if following_claim.void else Outcome(self._records_of(following_claim))
            )
        return outcome

    def _message(self, sequence: int) -> MessageRow:
        found = message_at(self._unit, self._topic, sequence)
        if found is None:
            raise AssertionError(f"message {sequence} is not projected")
        return found

    def _records_of(self, message: MessageRow) -> list[Settled]:
        """The record of a message and all that it brought about."""
        here = message.recorded_at - self._expected - 1
        return following(self.records[here:]) if here >= 0 else closure(self._unit, self._topic, message.recorded_at)

    def _void(self, submission: Submission, command: Command, message: MessageRow) -> Outcome:
        """What a request is told that came too late: what it would be told if it came now."""
        done = self._world.done.get(submission.idem) if submission.idem else None
        if done is not None:
            # The same request came by another server, and was first.
            return self.run(submission)
        decision = self.judge(command, submission.caller)
        if decision.repeat or not decision.drafts:
            answer = Outcome([self._read(decision.repeat)], repeated=True) if decision.repeat else None
            return answer or Outcome(answer=decision.answer)
        if isinstance(command, ClaimNext):
            return Outcome(answer=NO_TASKS)
        detail = f"Other requests were ordered before this one, and it changed nothing ({message.void}). Look again."
        raise Refused(409, "order_lost", detail, reason=message.void)
