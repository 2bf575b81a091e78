"""`redkey serve` whose event loop is watched: `python watched_server.py FILE -m redkey serve ...`.

A heartbeat on the loop is due every ten milliseconds. A thread beside it does the same, and the kernel counts how long
the thread of the loop was ready to run and got no processor, so that the time in which the machine gave the process no
processor can be told from the time in which something held up the loop. Each second the file gets what was found so
far: the longest time that the loop was held up in milliseconds, how often the store was read on the loop itself, and
where.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from redkey import fibers
from redkey.app import App

BEAT_SECONDS = 0.01
# Where the thread of the loop is while it waits for something to do.
_IDLE = "runners.py"
# Beats of the thread that are kept: more than one gap of the loop can be long.
_KEPT = 4096


class Watch:
    """What the loop of this process was held up by."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # When the thread beside the loop was late, and by how much.
        self._late: list[tuple[float, float]] = []
        self.longest = 0.0
        self.place = self._place = ""
        self._main, self._beaten = threading.get_ident(), time.monotonic()
        self.beats = 0
        self.places: dict[str, int] = {}

    def beat_beside(self) -> None:
        """The beats of the thread."""
        last = time.monotonic()
        while True:
            time.sleep(BEAT_SECONDS / 2)
            now = time.monotonic()
            if now - self._beaten > 0.04:
                # The longest one so far names where it was.
                frames = traceback.extract_stack(sys._current_frames()[self._main])
                self._place = " < ".join(
                    f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames[:-20:-1]
                )
            if (late := now - last - BEAT_SECONDS / 2) > 0.002:
                self._late.append((now, late))
                del self._late[:-_KEPT]
            last = now

    async def beat(self) -> None:
        """The beats of the loop."""
        told = last = time.monotonic()
        waited = _waited_seconds()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now, waited_before = time.monotonic(), waited
            waited = _waited_seconds()
            self.beats += 1
            starved = sum(late for at, late in self._late if last < at) + waited - waited_before
            held_up = now - last - BEAT_SECONDS - starved
            # Where the thread found it outside of any callback, or did not come to look either, it was the machine that
            # did not let the loop go on.
            if held_up > self.longest and self._place and not self._place.startswith(_IDLE):
                self.longest, self.place = held_up, self._place
            last = self._beaten = now
            self._place = ""
            if now - told > 0.5:
                told = now
                self.write()

    def write(self) -> None:
        """Tell what was found so far."""
        found = {
            "milliseconds": round(self.longest * 1000, 1),
            "beats": self.beats,
            "where": self.place,
            "places": self.places,
        }
        aside = self._path.with_suffix(".new")
        aside.write_text(json.dumps(found))
        aside.replace(self._path)

    def held_up(self) -> None:
        """The store was read on the loop, by whoever calls here."""
        ours = [one for one in traceback.extract_stack()[:-2] if "/redkey/" in one.filename]
        place = " < ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in reversed(ours[-12:]))
        self.places[place] = self.places.get(place, 0) + 1


def _waited_seconds() -> float:
    """Seconds for which the thread of the loop, the first one, was ready to run and had to wait so far."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def main(path: Path) -> None:
    """Serve, watched."""
    watch = Watch(path)
    start, begin = App.start, fibers.Threads.__init__

    def watched_threads(self: fibers.Threads, executor: Any) -> None:
        begin(self, executor)
        self.on_held_up = watch.held_up

    async def watched_start(self: App) -> None:
        await start(self)
        threading.Thread(target=watch.beat_beside, daemon=True).start()
        self.heartbeat = asyncio.create_task(watch.beat())  # type: ignore[attr-defined]

    fibers.Threads.__init__ = watched_threads  # type: ignore[method-assign]
    App.start = watched_start  # type: ignore[method-assign]
    importlib.import_module("redkey.cli").main()


if __name__ == "__main__":
    # The harness begins every server with `-m redkey`.
    path = Path(sys.argv[1])
    sys.argv[1:4] = []
    main(path)
