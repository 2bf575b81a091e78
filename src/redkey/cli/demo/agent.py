"""One agent of the demo, in its own process: an SDK worker that races for every task it may claim.

It works like any agent, but its work is simulated: it waits, then returns the artifacts that the plan requires.
"""

from __future__ import annotations

import os
import sys
import time

from redkey.cli.demo.cast import QUEUE, seconds_for
from redkey.cli.demo.tether import tether
from redkey.client import RedKey
from redkey.client.worker import Context


def work(name: str, role: str, seed: int, lease_seconds: int) -> None:
    """Race for the tasks of a role until the demo ends it."""
    rk = RedKey()

    @rk.worker(
        queue=QUEUE, roles=[role], agent=os.environ["REDKEY_AGENT_ID"], claim="race", lease_seconds=lease_seconds
    )
    def play(ctx: Context) -> dict[str, str]:
        guest = ctx.task.workflow_input["guest"]
        time.sleep(seconds_for(seed, name, f"{ctx.task.plan_task_id} {guest}"))
        for output in ctx.task.outputs:
            ctx.artifact(output, f"# {ctx.task.title}: {guest}\n\nWritten by {name}.\n", media_type="text/markdown")
        return {"by": name, "guest": guest}

    rk.run()


if __name__ == "__main__":
    tether(lambda: os._exit(0))
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
