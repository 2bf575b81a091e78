"""A CrewAI crew as the handler of a worker: `rk.worker(queue="research")(handler(crew))`.

After each step the handler checks the lease and reports progress. Do not use CrewAI's own human input: a tool calls
`redkey.adapters.asking.ask`, which blocks the task, and the crew starts again with the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.adapters.asking import check, stoppable
from redkey.adapters.costs import Costs
from redkey.client.worker import Context, Done


def handler(
    crew: Any,
    *,
    to_inputs: Callable[[Context], Mapping[str, Any]] | None = None,
    to_output: Callable[[Any], Any] = lambda result: result.raw,
    artifacts: Mapping[str, str] | None = None,
    cost_usd: Callable[[Any], float | None] = lambda usage: None,
) -> Callable[[Context], Done]:
    """Return a handler that runs a copy of the crew for each task, or a new one if `crew` is a function.

    `artifacts` names tasks whose raw output becomes an artifact: `{"report": "writing"}`. `cost_usd` prices tokens.
    """

    def work(ctx: Context) -> Done:
        run = crew() if callable(crew) else crew.copy()
        given = ctx.input if isinstance(ctx.input, Mapping) else {"input": ctx.input}
        inputs = to_inputs(ctx) if to_inputs else {**given, **({"answer": ctx.answer} if ctx.answer else {})}
        costs, before, callback = Costs(ctx, cost_usd), run.calculate_usage_metrics(), run.step_callback

        def used() -> Any:
            # Copies share their models, which count the tokens of all tasks together.
            now = run.calculate_usage_metrics().model_dump()
            return type(before)(**{name: number - getattr(before, name) for name, number in now.items()})

        def step(done: Any) -> None:
            costs.report(used())
            check(ctx)
            ctx.progress("a step is done")
            if callback is not None:
                callback(done)

        run.step_callback = step
        try:
            with stoppable(ctx):
                result = run.kickoff(inputs=dict(inputs))
        finally:
            costs.report(used())
        outputs = {task.name: task.raw for task in result.tasks_output}
        for name, task in (artifacts or {}).items():
            ctx.artifact(name, outputs[task])
        return Done(to_output(result), cost_usd=costs.usd)

    return work
