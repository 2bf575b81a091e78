"""Batches in pieces: the parts of one large request are begun a few at a time, so that others have their turn between.

While several workspaces write, all batches together begin one piece at a time, and rest after it as long as it took:
about half of the server's time is then left to those who send small requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeVar

from redkey.services.caller import Caller

Part = TypeVar("Part")
Result = TypeVar("Result")

_PIECE = 16
_SHARED_PIECE = 4


async def in_pieces(
    caller: Caller, parts: Sequence[Part], work: Callable[[int, Part], Any], result: type[Result]
) -> tuple[Result, ...]:
    """What `work(index, part)` gives for each part, in their order. What arrives together still shares a commit."""
    # Each part is as large as its share of the body.
    caller.body_bytes //= len(parts)
    begun: list[asyncio.Task[Result]] = []
    try:
        while len(begun) < len(parts):
            if caller.means.coordinator.is_shared:
                async with caller.means.batch_turn:
                    await _begin_slowly(begun, parts, work)
            else:
                _begin(begun, parts, work, _PIECE)
                await asyncio.sleep(0)
        return tuple(await asyncio.gather(*begun))
    except BaseException:
        for task in begun:
            task.cancel()
        raise


async def _begin_slowly(begun: list[Any], parts: Sequence[Any], work: Callable[[int, Any], Any]) -> None:
    started = perf_counter()
    _begin(begun, parts, work, _SHARED_PIECE)
    # Until they are recorded, or refused.
    await asyncio.wait(begun[-_SHARED_PIECE:])
    await asyncio.sleep(perf_counter() - started)


def _begin(begun: list[Any], parts: Sequence[Any], work: Callable[[int, Any], Any], count: int) -> None:
    first = len(begun)
    begun += [
        asyncio.ensure_future(work(first + place, part)) for place, part in enumerate(parts[first : first + count])
    ]
