"""A worker in Python: it claims a role's tasks from a queue and returns the outputs that they require.

    python examples/python_worker.py podcast researcher

It finds a local server by itself; for a remote one, set REDKEY_URL, REDKEY_API_KEY and REDKEY_AGENT_ID.
Ctrl-C stops it: running tasks are finished first.
"""

import os
import sys

from redkey.client import RedKey
from redkey.client.worker import Context, Fail

queue, role = sys.argv[1], sys.argv[2]
rk = RedKey()


@rk.worker(queue=queue, roles=[role], agent=os.environ.get("REDKEY_AGENT_ID"), lease_seconds=30, concurrency=2)
def work(ctx: Context) -> dict[str, str]:
    guest = (ctx.input or {}).get("guest")
    if not guest:
        raise Fail("the input names no guest", kind="rejected")
    ctx.progress(f"looking for facts about {guest}", percent=10)
    for name in ctx.task.outputs:
        ctx.artifact(name, f"# {guest}\n\nFive facts, each with its source.\n", media_type="text/markdown")
    return {"guest": guest}


if __name__ == "__main__":
    done = rk.run()
    print(f"{done.completed} completed, {done.failed} failed", flush=True)
