"""The policy of a guarded session: the bus asks the runtime's rules of conduct before it accepts a message.

Sessions that RedKey's own clients create are guarded. A session that a raw client creates is open: the bus carries what
it is given, as the protocol says, and the rules are left to the runtime of each client.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from redkey.bus.envelope import Envelope
from redkey.bus.runtime.conduct import Breach, Conduct, Said
from redkey.bus.runtime.events import Message, message_of
from redkey.bus.state import Session, Write
from redkey.errors import BusRefused

_TOLD = 10_000
# An earlier message of a session by its id, and the owner of a conversation that has an id of its own.
FindMessage = Callable[[str, str], Envelope | None]
FindOwner = Callable[[str, str], str | None]
# Tell a session that a message was refused.
Tell = Callable[[Session, Message, Breach], None]


class Guard:
    """The rules of all guarded sessions of a bus."""

    def __init__(self, find: FindMessage, owner_of: FindOwner, tell: Tell) -> None:
        self._find, self._owner_of, self._tell = find, owner_of, tell
        self._conduct = Conduct(self)
        self._told: OrderedDict[tuple[str, str, str, str], None] = OrderedDict()

    def __call__(self, session: Session, envelope: Envelope) -> Sequence[Write]:
        """Refuse a message that breaks a rule of its session; give the rows that the rules need later."""
        if session.policy != "guarded":
            return ()
        # Two workspaces may have a session of the same id; the rules tell sessions apart by their keys.
        message, now = msgspec.structs.replace(read_message(envelope), session_id=session.key), time.monotonic()
        breach = self._conduct.judge(message, now)
        if breach is not None:
            if self._is_first(session.key, message.conversation_id, message.src, breach.code):
                self._tell(session, message, breach)
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

    def said(self, session_id: str, message_id: str) -> Said | None:
        """An earlier message, as the rules ask for it."""
        envelope = self._find(session_id, message_id)
        if envelope is None:
            return None
        message = read_message(envelope)
        return Said(message.src, message.kind, message.parent_message_id or message.reply_to)

    def owner(self, session_id: str, conversation_id: str) -> str | None:
        """A conversation that has the id of its first message belongs to the sender of that; others have a row."""
        first = self._find(session_id, conversation_id)
        return first.src if first is not None else self._owner_of(session_id, conversation_id)

    def _is_first(self, session_id: str, conversation_id: str, src: str, code: str) -> bool:
        """True once for each conversation, sender and rule: a loop must not go on as a series of events."""
        key = session_id, conversation_id, src, code
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > _TOLD:
            self._told.popitem(last=False)
        return True


def read_message(envelope: Envelope) -> Message:
    """The message that an envelope carries."""
    return message_of(
        {
            "type": envelope.type,
            "id": envelope.id,
            "session": envelope.session,
            "src": envelope.src,
            "dst": envelope.dst,
            "topic": envelope.topic,
            "ts": envelope.ts,
            "payload": envelope.payload,
        }
    )
