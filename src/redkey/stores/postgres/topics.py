"""What a store remembers of a topic between units: its number, its tail, and who wrote last.

Units of one topic in this process take turns here, before they ask the database for its lock: a thread that waits holds
no connection, and the tail that a unit leaves is there when the next one begins.
"""

from __future__ import annotations

import threading
from weakref import WeakValueDictionary

from redkey.ledger.tail import TAILS, Tail


class TopicState:
    """One topic, as this process left it."""

    __slots__ = ("__weakref__", "committed", "foreign", "number", "tail", "turn", "units")

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.number: int | None = None
        self.tail: Tail | None = None
        # The count of commits after this process's last unit; how often others committed in between.
        self.units = -1
        self.foreign = 0
        # The head that this process's last unit left, or found.
        self.committed = 0


class TopicStates:
    """The states of the topics that were used last. A state that is in use is never replaced."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._all: WeakValueDictionary[str, TopicState] = WeakValueDictionary()
        self._recent: dict[str, TopicState] = {}

    def of(self, topic: str) -> TopicState:
        """The state of a topic."""
        with self._guard:
            state = self._recent.pop(topic, None) or self._all.get(topic)
            if state is None:
                state = self._all[topic] = TopicState()
            self._recent[topic] = state
            if len(self._recent) > TAILS:
                del self._recent[next(iter(self._recent))]
            return state

    def known(self, topic: str) -> TopicState | None:
        """The state of a topic, if there is one."""
        return self._all.get(topic)
