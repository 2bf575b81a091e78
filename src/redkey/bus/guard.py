"""The policy of guarded sessions: the bus applies the runtime's rules of conduct before it accepts a message.

Sessions created by RedKey's own clients are guarded. Sessions created by other clients are open: the bus delivers every
message, as the protocol says, and leaves the rules to the runtime of each client.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from redkey.bus.envelope import Envelope
from redkey.bus.model import SessionState, Write
from redkey.bus.runtime.conduct import Breach, Conduct, EarlierMessage
from redkey.bus.runtime.events import Message, message_of
from redkey.errors import BusRefused

_REPORTED = 10_000
# Find an earlier message by its id, and the owner of a conversation that has its own id.
FindMessage = Callable[[str, str], Envelope | None]
FindOwner = Callable[[str, str], str | None]
# Report to a session that a message was refused.
Report = Callable[[SessionState, Message, Breach], None]


class Guard:
    """The rules for all guarded sessions of a bus."""

    def __init__(self, find: FindMessage, owner_of: FindOwner, report: Report) -> None:
        self._find, self._owner_of, self._report = find, owner_of, report
        self._conduct = Conduct(self)
        self._reported: OrderedDict[tuple[str, str, str, str], None] = OrderedDict()

    def __call__(self, session: SessionState, envelope: Envelope) -> Sequence[Write]:
        """Refuse a message that breaks a rule; return the rows that the rules need later."""
        if session.policy != "guarded":
            return ()
        # Two workspaces may use the same session id, so the rules use the session's key.
        message, now = msgspec.structs.replace(read_message(envelope), session_id=session.key), time.monotonic()
        breach = self._conduct.judge(message, now)
        if breach is not None:
            if self._is_first(session.key, message.conversation_id, message.src, breach.code):
                self._report(session, message, breach)
            raise BusRefused(breach.message, code=breach.code, pointer="/payload")
        begins = (
            message.conversation_id != message.id
            and message.conversation_owner == message.src
            and self._conduct.owner(session.key, message.conversation_id) is None
        )
        self._conduct.note(message, now)
        if not begins:
            return ()
        return (("put_conversation", (session.number, message.conversation_id, message.src, envelope.ts)),)

    def said(self, session_id: str, message_id: str) -> EarlierMessage | None:
        """Find an earlier message for the rules."""
        envelope = self._find(session_id, message_id)
        if envelope is None:
            return None
        message = read_message(envelope)
        return EarlierMessage(message.src, message.kind, message.parent_message_id or message.reply_to)

    def owner(self, session_id: str, conversation_id: str) -> str | None:
        """Find the owner: the sender of the message that the conversation is named after, else the stored owner."""
        first = self._find(session_id, conversation_id)
        return first.src if first is not None else self._owner_of(session_id, conversation_id)

    def _is_first(self, session_id: str, conversation_id: str, src: str, code: str) -> bool:
        """True once for each conversation, sender and rule, so that a loop does not become a series of events."""
        key = session_id, conversation_id, src, code
        if key in self._reported:
            return False
        self._reported[key] = None
        if len(self._reported) > _REPORTED:
            self._reported.popitem(last=False)
        return True


def read_message(envelope: Envelope) -> Message:
    """Read the message of an envelope."""
    return message_of(
        {
            "v": envelope.v,
            "type": envelope.type,
            "id": envelope.id,
            "session": envelope.session,
            "src": envelope.src,
            "dst": envelope.dst,
            "topic": envelope.topic,
            "ts": envelope.ts,
            "payload": envelope.payload,
            "meta": envelope.meta,
        }
    )
