"""RedKey by its own SDK: the same cycle as `redkey_http`, with the public client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from uuid import uuid4

from redkey.client import AsyncRedKey, Claimed

ASKED = json.loads(sys.argv[1])
PLACE = ASKED["place"]
CARD: dict[str, object] = {"name": "bench", "description": "Works.", "version": "1", "skills": [], "capabilities": {}}


async def work(admin: AsyncRedKey, queue: str, agent_id: str, key: str, cycles: int) -> None:
    """Create, claim and complete tasks as one worker."""
    async with AsyncRedKey(PLACE["url"], key) as agent:
        for _ in range(cycles):
            await admin.tasks.create(queue, title="Research a guest", input={"body": "x" * ASKED["bytes"]})
            won = await agent.queues.claim_next(queue, agent_id, wait=30)
            assert isinstance(won, Claimed)
            await agent.claims.complete(won.claim_id)


async def main() -> None:
    """Run the measurement and print its result."""
    workers, each = ASKED["workers"], ASKED["tasks"] // ASKED["workers"]
    async with AsyncRedKey(PLACE["url"], PLACE["key"]) as admin:
        # A queue of this run only: the server may have run others before.
        queue = (await admin.queues.create(f"bench-{os.getpid()}")).queue_id
        # The same card is the same agent, so each has a card of its own.
        cards = [{**CARD, "url": f"https://bench.example/{uuid4()}"} for _ in range(workers)]
        joined = [await admin.agents.register(card=card, issue_key=True) for card in cards]
        begun = time.perf_counter()
        await asyncio.gather(*(work(admin, queue, one.agent_id, one.api_key or "", each) for one in joined))
        print(json.dumps({"cycles": workers * each, "seconds": time.perf_counter() - begun}))


asyncio.run(main())
