"""Live views: redrawn whenever something happens, and once a second for countdowns; elsewhere events, to the last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.screen import on_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from redkey.shapes.events import Event

_TICK_SECONDS = 1.0
# Events that come together are drawn together: a burst of events is one picture.
_BURST_SECONDS = 0.1

watch_option = click.option("--watch", "live", is_flag=True, help="Keep running, and redraw when something happens.")


def watch(draw: Callable[[], tuple[RenderableType, bool]], follow: Callable[[], Iterator[Any]]) -> None:
    """Draw until `draw` says that this was the last picture; `follow` yields whenever something happens."""
    if not on_terminal():
        raise click.UsageError("a live view needs a terminal; elsewhere use redkey events tail --follow")
    from rich.console import Console
    from rich.live import Live

    ears = _Ears(follow)
    with Live(console=Console(highlight=False), auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            view, last = draw()
            live.update(view, refresh=True)
            if last:
                return
            ears.wait()


def events_to_end(
    history: Callable[[], Iterable[Event]],
    follow: Callable[[int], Iterable[Event]],
    is_over: Callable[[], bool],
    may_end: Callable[[Event], bool] = lambda event: True,
) -> Iterator[Event]:
    """Yield the events of a task or a run from its first to its last one.

    The state is read apart from the events, and may be ahead of them. So the history is read again once the state is
    final: no event is lost, and none is waited for that does not come. `may_end` tells after which events to look.
    """
    last = 0
    while True:
        over = is_over()
        for event in history():
            if event.sequence > last:
                yield event
                last = event.sequence
        if over:
            return
        if is_over():
            continue
        for event in follow(last):
            yield event
            last = event.sequence
            if may_end(event) and is_over():
                break


class _Ears:
    """A thread that listens while the view is drawn; a permanent stream error is raised in the waiting thread."""

    def __init__(self, follow: Callable[[], Iterator[Any]]) -> None:
        self._heard = threading.Event()
        self._failure: BaseException | None = None
        # A daemon thread, because a read may block as long as the stream is silent, and the command must not wait for
        # it.
        threading.Thread(target=self._listen, args=(follow,), daemon=True).start()

    def _listen(self, follow: Callable[[], Iterator[Any]]) -> None:
        try:
            for _ in follow():
                self._heard.set()
        except BaseException as failure:
            self._failure = failure
            self._heard.set()

    def wait(self) -> None:
        if self._heard.wait(_TICK_SECONDS):
            time.sleep(_BURST_SECONDS)
            self._heard.clear()
        if self._failure is not None:
            raise self._failure
