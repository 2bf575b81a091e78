"""Live views: drawn again whenever something happened, and once a second for what counts down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.screen import on_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

_TICK_SECONDS = 1.0
# What happens at once is drawn at once: a burst of events is one picture.
_BURST_SECONDS = 0.1

watch_option = click.option("--watch", "live", is_flag=True, help="Stay, and draw it again whenever something happens.")


def watch(draw: Callable[[], tuple[RenderableType, bool]], follow: Callable[[], Iterator[Any]]) -> None:
    """Show what `draw` gives until it says that this was the last; `follow` yields whenever something happened."""
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


class _Ears:
    """Somebody who listens beside the drawing; a stream that breaks for good is raised where one waits."""

    def __init__(self, follow: Callable[[], Iterator[Any]]) -> None:
        self._heard = threading.Event()
        self._failure: BaseException | None = None
        # A daemon: it may hang in a read for as long as the stream is silent, and nobody should wait for it.
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
