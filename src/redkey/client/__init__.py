"""The Python SDK of RedKey: two clients over one core without I/O, and workers.

    from redkey.client import RedKey

    rk = RedKey()                                     # the server that `redkey serve` runs here; or RedKey(url, key)
    rk.queues.create("podcast")
    task = rk.tasks.create("podcast", title="Research Piers Gorman", required_roles=["researcher"], input={...})

    @rk.worker(queue="podcast", roles=["researcher"]) # claims, heartbeats, completes; see `redkey.client.worker`
    def research(ctx):
        return {"facts": find(ctx.input["guestName"])}

    rk.run()

The operations, named as in the API; `AsyncRedKey` has the same operations, to be awaited:

    workspaces  list create policy set_policy raise_rules
    keys        list create revoke
    agents      register list get update heartbeat deactivate claim_history events follow inbox
    roles       create list get grant revoke     queues       create list get update counts claim_next
    tasks       create create_many wait as_ended list available get explain claim cancel retry unblock add_message
                messages raise_concern events context
    claims      start heartbeat release complete complete_many fail block add_artifact plan report_usage
                report_progress events
    definitions validate simulate create list get update create_version publish
    workflows   start list get state graph mermaid pause resume cancel approve reject events follow
    gates       list get approve reject          inbox        send list read
    ledger      query                            events       get follow
    receipts    get summary tlog_proof page      checkpoints  latest
    content     put get pieces erase             usage        get
    billing     credits grant set_prices         signup       create
    oauth       token revoke register metadata resource mcp_resource key_set
    people      invite list code end_session remove
    webhooks    create list get remove resume    logins       create exchange
    server      health ready metrics openapi docs find_ids

- Iterate over a list (`for agent in rk.agents.list()`) to fetch it page by page; `.page()` fetches the first page.
- `claim` and `claim_next` return `Claimed | Missed | Rejected | NoTasks`: losing a race is not an error.
- `hold` and `hold_task` claim a task and send its heartbeats until you end the hold: see `redkey.client.hold`.
- `rk.tasks.create(...).result()` waits for the output of a task, `rk.tasks.wait(ids)` for many tasks.
- `follow` yields events as they happen and reconnects by itself; leave the loop to end it.
- A refused call raises a subclass of `ApiError` (`NotFound`, `LeaseLost`, ...) with `code`, `status`, `detail` and
  `errors`. Calls that may succeed later are retried with the same idempotency key, after `Retry-After`.
- `rk.with_options(timeout=, max_retries=, idempotency_key=)` returns the same client with other options.
- Replies are structs with the names of the API in snake_case; `msgspec.json.encode(reply)` gives the API's JSON.
"""

from redkey.client.clients import AsyncRedKey, RedKey
from redkey.client.hold import Hold
from redkey.client.resources.receipts import Receipt
from redkey.client.resources.tasks import PendingTask
from redkey.client.worker import AsyncContext, Block, Context, Done, Fail, Release, Tally
from redkey.errors import (
    AlreadyTerminal,
    ApiError,
    CallMisused,
    ClientError,
    Conflict,
    CreditsExhausted,
    Forbidden,
    Invalid,
    LeaseLost,
    NotFound,
    RateLimited,
    RedKeyError,
    ReplyRefused,
    ServerFailed,
    TimedOut,
    Unauthorized,
    Unreachable,
    WorkFailed,
    WorkInterrupted,
)
from redkey.shapes.claims import (
    Assignment,
    Claimed,
    ClaimNext,
    ClaimNextOutcome,
    ClaimOutcome,
    Missed,
    NoTasks,
    Rejected,
)
from redkey.shapes.events import Event
from redkey.shapes.fields import Page
from redkey.shapes.tasks import ApprovalGate, NewTask, Retry, Task

__all__ = [
    "AlreadyTerminal",
    "ApiError",
    "ApprovalGate",
    "Assignment",
    "AsyncContext",
    "AsyncRedKey",
    "Block",
    "CallMisused",
    "ClaimNext",
    "ClaimNextOutcome",
    "ClaimOutcome",
    "Claimed",
    "ClientError",
    "Conflict",
    "Context",
    "CreditsExhausted",
    "Done",
    "Event",
    "Fail",
    "Forbidden",
    "Hold",
    "Invalid",
    "LeaseLost",
    "Missed",
    "NewTask",
    "NoTasks",
    "NotFound",
    "Page",
    "PendingTask",
    "RateLimited",
    "Receipt",
    "RedKey",
    "RedKeyError",
    "Rejected",
    "Release",
    "ReplyRefused",
    "Retry",
    "ServerFailed",
    "Tally",
    "Task",
    "TimedOut",
    "Unauthorized",
    "Unreachable",
    "WorkFailed",
    "WorkInterrupted",
]
