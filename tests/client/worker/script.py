"""A worker as a process of its own, told by its arguments what to be. It writes a line for each thing it learns."""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from redkey.client import AsyncContext, AsyncRedKey, Context, RedKey


def say(*words: object) -> None:
    print(*words, flush=True)


def hold(agent: str) -> None:
    """Begin, wait for a line on standard input, look at the lease, and return."""
    rk = RedKey()

    @rk.worker(queue="podcast", agent=agent, lease_seconds=5)
    def handle(ctx: Context) -> str:
        say("begun", ctx.claim_id)
        sys.stdin.readline()
        say("lost" if ctx.lease_lost.is_set() else "held")
        rk.stop()
        return f"by {agent}"

    say(rk.run())


def wait(agent: str) -> None:
    """Begin, and go on until told to stop."""
    rk = RedKey()

    @rk.worker(queue="podcast", agent=agent)
    def handle(ctx: Context) -> None:
        say("begun", ctx.claim_id)
        ctx.lease_lost.wait()

    say(rk.run(grace_seconds=0.5))


def stubborn(agent: str) -> None:
    """Begin, and do not end for being asked to."""
    rk = RedKey()

    @rk.worker(queue="podcast", agent=agent)
    def handle(ctx: Context) -> None:
        say("begun", ctx.claim_id)
        ctx.lease_lost.wait()

    say(rk.run(grace_seconds=600))


def block(agent: str) -> None:
    """Block the event loop for longer than the lease."""

    async def main() -> None:
        async with AsyncRedKey() as rk:

            @rk.worker(queue="podcast", agent=agent, lease_seconds=5)
            async def handle(ctx: AsyncContext) -> str:
                say("begun", ctx.claim_id)
                time.sleep(7.5)
                rk.stop()
                return "held " + ("lost" if ctx.lease_lost.is_set() else "all along")

            say(await rk.run())

    asyncio.run(main())


def race(agent: str) -> None:
    """Race for whatever becomes available."""
    rk = RedKey()

    @rk.worker(queue="podcast", agent=agent, roles=["racer"], claim="race", lease_seconds=5)
    def handle(ctx: Context) -> str:
        say("won", ctx.task.task_id)
        return agent

    say(rk.run())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    WAYS = {"hold": hold, "wait": wait, "stubborn": stubborn, "block": block, "race": race}
    WAYS[sys.argv[1]](sys.argv[2])
