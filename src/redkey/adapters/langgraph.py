"""A LangGraph graph as the handler of a worker: `rk.worker(queue="research")(handler(graph))`.

The thread is the task and its attempt: a task that was blocked goes on where its graph was interrupted, in whatever
worker, when the checkpointer is shared (SQLite, PostgreSQL); a retry begins anew. Between nodes the lease is checked
and progress is told. An interrupt blocks the task with what the graph asks; the answer resumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.client.worker import Block, Context, Done

Cost = Callable[[Any], float | None]


def handler(
    graph: Any,
    *,
    config: Mapping[str, Any] | None = None,
    to_input: Callable[[Context], Any] = lambda ctx: ctx.input,
    to_output: Callable[[Any], Any] = lambda state: state,
    artifacts: Mapping[str, str] | None = None,
    cost_usd: Cost = lambda state: None,
) -> Callable[[Context], Done]:
    """A handler that runs a compiled graph with a checkpointer.

    `to_output` makes the task's output of the last state, `artifacts` names the keys of the state that become artifacts
    (`{"report": "draft"}`: the artifact `report` is `state["draft"]`), `cost_usd` reads the cost from the state.
    """
    if getattr(graph, "checkpointer", None) is None:
        raise ValueError("compile the graph with a checkpointer: without one an interrupt could not be resumed")
    from langgraph.types import Command

    def work(ctx: Context) -> Done:
        given = dict(config or {})
        thread = f"{ctx.task.task_id}:{ctx.task.attempt}"
        given["configurable"] = {**given.get("configurable", {}), "thread_id": thread}
        # A lease that was lost leaves a thread in the middle: it goes on from its last node, with nothing to resume.
        before = graph.get_state(given)
        interrupted = any(task.interrupts for task in before.tasks)
        resume: Any = Command(resume=ctx.answer) if interrupted else None
        for update in graph.stream(resume if before.next else to_input(ctx), given, stream_mode="updates"):
            ctx.check()
            if "__interrupt__" in update:
                raise Block(str(update["__interrupt__"][0].value))
            ctx.progress(f"{', '.join(update)} done")
        state = graph.get_state(given).values
        for name, key in (artifacts or {}).items():
            ctx.artifact(name, state[key])
        return Done(to_output(state), cost_usd=cost_usd(state))

    return work
