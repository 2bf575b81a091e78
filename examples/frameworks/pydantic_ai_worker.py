"""Pydantic AI on a queue: one run of an agent for each task. `python3 pydantic_ai_worker.py QUEUE`."""

import sys

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from redkey.client import Context, RedKey
from redkey.client.worker import Done

# To use a real model: Agent("anthropic:claude-sonnet-4-6").
agent = Agent(TestModel(custom_output_text="Five facts."))
DOLLARS_A_TOKEN = 0.000003


def work(ctx: Context) -> Done:
    result = agent.run_sync(f"{ctx.task.title}\n\n{ctx.input}")
    ctx.check()
    used = result.usage() if callable(result.usage) else result.usage
    return Done({"text": result.output}, cost_usd=round((used.input_tokens + used.output_tokens) * DOLLARS_A_TOKEN, 6))


with RedKey() as rk:
    rk.worker(queue=sys.argv[1], agent="pydantic-ai")(work)
    rk.run()
