"""Workers: a function over the tasks of a queue.

    @rk.worker(queue="podcast", roles=["researcher"])
    def research(ctx):
        return {"facts": find(ctx.input["guestName"])}

    rk.run()                                  # until SIGTERM, SIGINT or rk.stop(); with AsyncRedKey: await rk.run()

- The worker claims, starts, sends heartbeats at a third of the lease, and reports the end: a return completes the
  task, `Fail`, `Block` and `Release` do what they say, and any other exception fails the attempt.
- The returned value fills the task's required outputs (`share_out` in `outputs`); the rest is the task's output.
- `ctx` has `task`, `input`, `artifact(name, content)`, `read(upstream name)`, `progress(text)`, `plan(plan)`,
  `lease_lost`, `cancelled`, `stopping` and `check()`. Async handlers await the methods that call the server.
- A handler learns that its claim was lost from `ctx.lease_lost` or `ctx.check()`; an async handler is cancelled. The
  worker logs the loss. What the handler does after that changes nothing.
- `claim="race"` claims tasks from the event stream, in competition with all other listeners; `claim="next"` asks the
  queue for the next task.

`crew` runs the workers, `slot` is one thread of a worker, `hold` is one claimed task, and `lease` and `pulse` keep it.
"""

from redkey.client.worker.context import AsyncContext, Context
from redkey.client.worker.tally import Tally
from redkey.client.worker.verdict import Block, Done, Fail, Release

__all__ = ["AsyncContext", "Block", "Context", "Done", "Fail", "Release", "Tally"]
