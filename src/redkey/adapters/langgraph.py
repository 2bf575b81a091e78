"""A LangGraph graph as the handler of a worker: `rk.worker(queue="research")(handler(graph))`.

Each attempt of a task has its own thread id, so a retry starts from the beginning. An interrupt blocks the task with
its question, and the answer resumes the graph there, in any worker that shares the checkpointer (SQLite, PostgreSQL).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.adapters.costs import Costs
from redkey.client.worker import Block, Context, Done


def handler(
    graph: Any,
    *,
    config: Mapping[str, Any] | None = None,
    to_input: Callable[[Context], Any] = lambda ctx: ctx.input,
    to_output: Callable[[Any], Any] = lambda state: state,
    artifacts: Mapping[str, str] | None = None,
    cost_usd: Callable[[Any], float | None] = lambda state: None,
) -> Callable[[Context], Done]:
    """Return a handler that runs a compiled graph with a checkpointer.

    `artifacts` names keys of the last state that become artifacts: with `{"report": "draft"}`, `report` is
    `state["draft"]`. `cost_usd` reads from a state what its thread has cost so far; it is reported after each node.
    """
    if getattr(graph, "checkpointer", None) is None:
        raise ValueError("compile the graph with a checkpointer: without one an interrupt cannot be resumed")
    from langgraph.types import Command

    def work(ctx: Context) -> Done:
        settings = {**(config or {}), "configurable": dict((config or {}).get("configurable", {}))}
        settings["configurable"]["thread_id"] = f"{ctx.task.task_id}:{ctx.task.attempt}"
        state = graph.get_state(settings)
        costs = Costs(ctx, cost_usd, state.values)
        # After a lost lease the thread is between two nodes and continues there, or its question was never asked.
        questions = [interrupt for task in state.tasks for interrupt in task.interrupts]
        if questions and not ctx.answer:
            raise Block(str(questions[0].value))
        given = Command(resume={questions[0].id: ctx.answer}) if questions else None if state.next else to_input(ctx)
        for update in graph.stream(given, settings, stream_mode="updates", durability="sync"):
            costs.report(graph.get_state(settings).values)
            ctx.check()
            if "__interrupt__" not in update:
                ctx.progress(f"{', '.join(name for name in update if name != '__metadata__')} done")
        state = graph.get_state(settings)
        costs.report(state.values)
        # Of several open questions the first is asked; the others follow when it is answered.
        for interrupt in (one for task in state.tasks for one in task.interrupts):
            raise Block(str(interrupt.value))
        for name, key in (artifacts or {}).items():
            ctx.artifact(name, state.values[key])
        return Done(to_output(state.values), cost_usd=costs.usd)

    return work
