"""Requests in an ordered workspace: decided here, submitted to the network, and answered by what it orders.

A request passes two units. The first decides it by the world as far as it is known, stores its content, and returns the
wires to submit. The second runs once every message up to its own is projected, and makes the outcome from the records:
other requests may have been ordered in between, and then the request is decided again for its reply.
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
from redkey.services.ordered.fees import FeeDesk
from redkey.services.ordered.messages import MessageRow, ProjectMessages, message_at
from redkey.services.ordered.projection import Projection
from redkey.services.outcome import NO_TASKS, Outcome, Outgoing, Settled, closure, following
from redkey.services.submission import Submission
from redkey.services.unit_of_work import next_of, unfit
from redkey.wire.ids import event_id


class OrderedWork(Projection):
    """The work of one unit for the requests of an ordered workspace."""

    # Reserves the fees of the messages to submit; None if nothing is paid.
    desk: FeeDesk | None = None

    def judge(self, command: Command, caller: Actor) -> Decision:
        """Decide in the world as it is: only messages change it, so the records of a command remove nothing from it."""
        return decide(self._world, command, caller, self._timestamp, self._ids, self._recall(command))

    def _carry_out(self, submission: Submission, command: Command, drafts: list[Draft], has_effect: bool) -> Outcome:
        """Return the wires to submit, and store what must exist before they are: content, and the hash of a key."""
        # Consequences are derived by every reader, at their place.
        requests = [draft for draft in drafts if draft.sender != "system"]
        self._put_key(requests, submission)
        asked = next_of(command)
        if asked is not None:
            # Decided at its place: the hold that ends with this command is over then.
            agent = acting_agent(self._world, submission.caller, asked.agent_id)
            requests.append(request_next(self._world, asked, agent, submission.caller))
        messages: list[tuple[str, bytes]] = []
        request, cause = next((draft for draft in requests if not draft.leads), requests[0]), ""
        for draft in requests:
            draft.causation_id = draft.causation_id or cause
            wire, message, findings = self._fitted(draft)
            if findings:
                raise unfit(draft, findings[0])
            messages.append((wire.wire_id, message))
            if draft is request:
                cause = wire.wire_id
                # The reply to a caller that does not wait.
                submission.event_id = event_id(cause)
        sizes = [len(message) for _, message in messages]
        names = self.desk.reserve(self._unit, self._topic, sizes) if self.desk is not None else [""] * len(sizes)
        for one in (*submission.contents, *(one for draft in requests for one in draft.contents)):
            self.contents.setdefault(one.sha256, one)
        if isinstance(command, CreateKey):
            effects.apply(self._unit, self._topic, command)
        outgoing = zip(messages, names, strict=True)
        return Outcome(outgoing=tuple(Outgoing(*message, name) for message, name in outgoing))

    def answer(self, submission: Submission) -> Outcome:
        """Return the outcome of a request whose messages are all projected; Refused if the order left nothing of it."""
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
        """Return the record of a message and all its consequences."""
        here = message.recorded_at - self._expected - 1
        return following(self.records[here:]) if here >= 0 else closure(self._unit, self._topic, message.recorded_at)

    def _void(self, submission: Submission, command: Command, message: MessageRow) -> Outcome:
        """Return the outcome of a request that was ordered too late, or raise the error that it would get now."""
        done = self._world.done.get(submission.idem) if submission.idem else None
        if done is not None:
            # The same request was sent to another server, and was ordered first.
            return self.run(submission)
        decision = self.judge(command, submission.caller)
        if decision.repeat or not decision.drafts:
            answer = Outcome([self._read(decision.repeat)], repeated=True) if decision.repeat else None
            return answer or Outcome(answer=decision.answer)
        if isinstance(command, ClaimNext):
            return Outcome(answer=NO_TASKS)
        detail = f"Other requests were ordered before this one, and it changed nothing ({message.void}). Look again."
        raise Refused(409, "order_lost", detail, reason=message.void)
