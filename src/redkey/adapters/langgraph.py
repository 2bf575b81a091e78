"""A LangGraph graph as the handler of a worker: `rk.worker(queue="research")(handler(graph))`.

Each attempt of a task has its own thread id. An interrupt blocks the task with the graph's question, and the answer
resumes the graph where it was interrupted. Any worker can resume it if the workers share a checkpointer (SQLite,
PostgreSQL). A retry starts from the beginning. Between nodes the handler checks the lease and reports progress.
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
    """Return a handler that runs a compiled graph with a checkpointer.

    `to_output` turns the last state into the task's output. `artifacts` names the keys of the state that become
    artifacts (`{"report": "draft"}`: the artifact `report` is `state["draft"]`). `cost_usd` reads the cost from the
    state.
    """
    if getattr(graph, "checkpointer", None) is None:
        raise ValueError("compile the graph with a checkpointer: without one an interrupt cannot be resumed")
    from langgraph.types import Command

    def work(ctx: Context) -> Done:
        settings = dict(config or {})
        thread = f"{ctx.task.task_id}:{ctx.task.attempt}"
        settings["configurable"] = {**settings.get("configurable", {}), "thread_id": thread}
        # After a lost lease the thread is between two nodes: it continues there, and there is no interrupt to resume.
        before = graph.get_state(settings)
        interrupted = any(task.interrupts for task in before.tasks)
        resume: Any = Command(resume=ctx.answer) if interrupted else None
        for update in graph.stream(resume if before.next else to_input(ctx), settings, stream_mode="updates"):
            ctx.check()
            if "__interrupt__" in update:
                raise Block(str(update["__interrupt__"][0].value))
            ctx.progress(f"{', '.join(update)} done")
        state = graph.get_state(settings).values
        for name, key in (artifacts or {}).items():
            ctx.artifact(name, state[key])
        return Done(to_output(state), cost_usd=cost_usd(state))

    return work
