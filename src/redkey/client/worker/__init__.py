"""Workers: a function over the tasks of a queue.

    @rk.worker(queue="podcast", roles=["researcher"])
    def research(ctx):
        return {"facts": find(ctx.input["guestName"])}

    rk.run()                                  # until SIGTERM, SIGINT or rk.stop(); with AsyncRedKey: await rk.run()

- The worker claims, starts, heartbeats at a third of the lease, and tells the end: a return completes, `Fail`, `Block`
  and `Release` do what they say, any other exception fails the attempt.
- What is returned fills the outputs that the task must have (`share_out` in `outputs`); the rest is its output.
- `ctx` has `task`, `input`, `artifact(name, content)`, `read(upstream name)`, `progress(text)`, `plan(plan)`,
  `lease_lost`, `cancelled`, `stopping` and `check()`. In an async handler what calls the server is awaited.
- Whoever lost its claim is told by `ctx.lease_lost`, `ctx.check()`, or cancellation of an async handler, and in the
  log; what it does after that changes nothing.
- `claim="race"` claims what the event stream shows, against all others who see it; `claim="next"` asks the queue.

`crew` runs workers, `slot` is one thread of one, `hold` is one task in its hands, `lease` and `pulse` keep it.
"""

from redkey.client.worker.context import AsyncContext, Context
from redkey.client.worker.tally import Tally
from redkey.client.worker.verdict import Block, Done, Fail, Release

__all__ = ["AsyncContext", "Block", "Context", "Done", "Fail", "Release", "Tally"]
