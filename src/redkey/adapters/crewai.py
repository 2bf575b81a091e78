"""A CrewAI crew as the handler of a worker: `rk.worker(queue="research")(handler(crew))`.

Each task gets its own copy of the crew, so concurrent tasks share no state. After each step the handler checks the
lease and reports progress. Your prices turn the crew's token usage into the cost. Do not use CrewAI's own human input:
raise `Block` from a tool instead, and the task waits for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.client.worker import Block, Context, Done


def handler(
    crew: Any,
    *,
    to_inputs: Callable[[Context], Mapping[str, Any]] | None = None,
    to_output: Callable[[Any], Any] = lambda result: result.raw,
    artifacts: Mapping[str, str] | None = None,
    cost_usd: Callable[[Any], float | None] = lambda usage: None,
) -> Callable[[Context], Done]:
    """Return a handler that runs a copy of the crew for each task.

    `to_inputs` returns the crew's inputs; by default they are the task's input, plus `answer` after a block was lifted.
    `artifacts` names tasks of the crew whose raw output becomes an artifact (`{"report": "writing"}`). `cost_usd`
    turns the crew's token usage into dollars.
    """

    def work(ctx: Context) -> Done:
        copy = crew.copy()
        inputs = dict(to_inputs(ctx)) if to_inputs else dict(ctx.input or {})
        if to_inputs is None and ctx.answer:
            inputs["answer"] = ctx.answer
        stopped: list[BaseException] = []

        def step(_: Any) -> None:
            try:
                ctx.check()
            except BaseException as lost:
                # CrewAI swallows exceptions of callbacks, so the error is kept and raised again below.
                stopped.append(lost)
                raise
            ctx.progress("a step is done")

        copy.step_callback = step
        try:
            result = copy.kickoff(inputs=inputs)
        except Exception as failed:
            raise failed if isinstance(failed, Block) or not stopped else stopped[0] from None
        if stopped:
            raise stopped[0]
        outputs = {task.name: task.raw for task in result.tasks_output}
        for name, task in (artifacts or {}).items():
            ctx.artifact(name, outputs[task])
        return Done(to_output(result), cost_usd=cost_usd(result.token_usage))

    return work
