"""DSPy on a queue: one call of a program for each task. `python3 dspy_worker.py QUEUE`."""

import sys

import dspy
from dspy.utils import DummyLM

from redkey.client import Context, RedKey

# To use a real model: dspy.LM("anthropic/claude-sonnet-4-6").
model = DummyLM([{"answer": "Five facts."}] * 1000)
program = dspy.Predict("question -> answer")


def work(ctx: Context) -> dict[str, str]:
    # Workers run in threads, and DSPy's settings are per thread inside this block.
    with dspy.context(lm=model):
        found = program(question=f"{ctx.task.title}\n\n{ctx.input}")
    ctx.check()
    return {"text": found.answer}


with RedKey() as rk:
    rk.worker(queue=sys.argv[1], agent="dspy")(work)
    rk.run()
