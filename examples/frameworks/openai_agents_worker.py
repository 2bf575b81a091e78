"""The OpenAI Agents SDK on a queue: one run for each task. `python3 openai_agents_worker.py QUEUE`."""

import sys
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Runner, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from redkey.client import Context, RedKey
from redkey.client.worker import Done

DOLLARS_A_TOKEN = 0.000003
set_tracing_disabled(True)


class Canned(Model):
    """Replaces a model, so that this runs without a key. To use a real one: Agent(model="gpt-5")."""

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        text = ResponseOutputText(text="Five facts.", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        used = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        return ModelResponse(output=[said], usage=used, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


agent = Agent(name="Researcher", instructions="Find five facts.", model=Canned())


def work(ctx: Context) -> Done:
    result = Runner.run_sync(agent, f"{ctx.task.title}\n\n{ctx.input}")
    ctx.check()
    used = sum(one.usage.total_tokens for one in result.raw_responses)
    return Done({"text": result.final_output}, cost_usd=round(used * DOLLARS_A_TOKEN, 6))


with RedKey() as rk:
    rk.worker(queue=sys.argv[1], agent="openai-agents")(work)
    rk.run()
