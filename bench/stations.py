"""How many Python functions of RedKey a warm request calls, and in how many modules: `python -m bench.stations`.

A whole server runs in this process. Each request is sent often enough first that caches are filled, then twenty times
more while the functions of the server's thread are counted. The smallest count is used, because a timer or a signed
checkpoint may add calls that do not belong to the request. On a busy machine that happens to most requests.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

import redkey
from redkey.app import App
from redkey.client import RedKey
from redkey.config import Config
from redkey.http.host import Host, close, listen, url_of

_ROOT = str(Path(redkey.__file__).parent)
_WARM, _ROUNDS = 20, 20


def _counted(loop: asyncio.AbstractEventLoop, send: Callable[[], Any]) -> Counter[CodeType]:
    """The functions of RedKey that the loop's thread enters while a request is sent and answered."""
    counts: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_ROOT):
            counts[frame.f_code] += 1

    for hook in (note, None):
        done: Future[None] = Future()
        loop.call_soon_threadsafe(lambda hook=hook, done=done: (sys.setprofile(hook), done.set_result(None)))
        done.result()
        if hook is not None:
            send()
    return counts


def _measure(loop: asyncio.AbstractEventLoop, rk: RedKey) -> dict[str, Counter[CodeType]]:
    rk.queues.create("work")
    rk.roles.create("worker")
    agent = rk.agents.register(card={"name": "Counter"}).agent_id
    rk.roles.grant("worker", agent)
    held: list[Any] = []
    steps: dict[str, Callable[[], Any]] = {
        "create": lambda: rk.tasks.create("work", title="Count", required_roles=["worker"]),
        "claim": lambda: held.append(rk.queues.claim_next("work", agent)),
        "complete": lambda: rk.claims.complete(held.pop().claim_id, summary="Counted."),
    }
    for _ in range(_WARM):
        for send in steps.values():
            send()
    rounds = [{name: _counted(loop, send) for name, send in steps.items()} for _ in range(_ROUNDS)]
    return {name: min((counts[name] for counts in rounds), key=Counter.total) for name in steps}


def count() -> dict[str, Counter[CodeType]]:
    """The functions that each request of a cycle enters, with how often."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config(data=Path(folder) / "data", port=0)
        sockets = listen(config)
        config = msgspec.structs.replace(config, public_url=url_of(sockets[0]))
        app = App(config, lambda cause: None)
        found: dict[str, Counter[CodeType]] = {}

        async def whole() -> None:
            loop, ready = asyncio.get_running_loop(), asyncio.Event()
            host = Host(app, config, ready.set)
            serving = asyncio.ensure_future(host.serve(sockets))
            await ready.wait()
            with RedKey(config.public_url, app.first_key) as rk:
                found.update(await asyncio.to_thread(_measure, loop, rk))
            host.stop()
            await serving

        asyncio.run(whole())
        close(sockets)
    return found


def report() -> None:
    """Print the counts."""
    for name, counts in count().items():
        modules = {code.co_filename for code in counts}
        told = {"request": name, "calls": counts.total(), "modules": len(modules)}
        print(
            json.dumps(told) if "--json" in sys.argv else f"{name:10} {counts.total():5} calls {len(modules):4} modules"
        )
        if "--all" in sys.argv:
            for code, times in counts.most_common():
                print(f"    {times:4}  {code.co_filename.removeprefix(_ROOT + '/')}:{code.co_qualname}")


if __name__ == "__main__":
    report()
