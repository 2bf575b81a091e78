"""A follower of all events that survives its servers: when a stream ends, it resumes with the last id that it has.

`python -m tests.harness.follower KEY PLACE...` starts to follow at once, from the beginning of the ledger. A line on
its standard input is a sequence: when it has read that far, it prints all sequences that it saw, in order, and ends.
"""

from __future__ import annotations

import json
import sys
import threading
from itertools import cycle

import httpx2

from tests.harness.load import AGAIN_SECONDS


class Follower:
    """What was seen of the ledger, and how far to read."""

    def __init__(self, key: str, places: list[str]) -> None:
        self._key, self._places = key, cycle(places)
        self.seen: list[int] = []
        self.last = 0
        self._until = threading.Event()
        self._goal = 0

    def aim(self, goal: int) -> None:
        self._goal = goal
        self._until.set()

    @property
    def _there(self) -> bool:
        return self._until.is_set() and self.last >= self._goal

    def run(self) -> None:
        while not self._there:
            try:
                self._follow(next(self._places))
            except httpx2.HTTPError:
                # Its server is gone or not up yet.
                threading.Event().wait(AGAIN_SECONDS)

    def _follow(self, place: str) -> None:
        headers = {"authorization": f"Bearer {self._key}", "last-event-id": str(self.last)}
        timeout = httpx2.Timeout(60)
        with httpx2.stream("GET", f"{place}/stream", headers=headers, timeout=timeout) as stream:
            stream.raise_for_status()
            number, is_event = 0, False
            for line in stream.iter_lines():
                if line.startswith("id: "):
                    number = int(line[4:])
                elif line.startswith("data: "):
                    is_event = True
                elif not line:
                    # An event counts only when complete: one that is cut off comes again with the next stream.
                    if is_event:
                        self.seen.append(number)
                    is_event = False
                    self.last = max(self.last, number)
                    if self._there:
                        return


def main(key: str, *places: str) -> None:
    follower = Follower(key, list(places))
    reader = threading.Thread(target=lambda: follower.aim(int(sys.stdin.readline())), daemon=True)
    reader.start()
    print("ready", flush=True)
    follower.run()
    print(json.dumps(follower.seen), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
