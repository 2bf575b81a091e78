"""A CrewAI crew on a queue, through the adapter. `python3 crewai_worker.py QUEUE`."""

import sys
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from redkey.adapters import crewai
from redkey.adapters.asking import ask
from redkey.client import RedKey


class Canned(BaseLLM):
    """Replaces a model, so that this runs without a key. To use a real one: Agent(llm="anthropic/...")."""

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        self._track_token_usage_internal({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
        said = str(messages)
        if "Research nobody" in said and "The human says" not in said:
            return 'Thought: I do not know whom.\nAction: ask_human\nAction Input: {"question": "Who is the guest?"}'
        return f"Thought: I know it.\nFinal Answer: Five facts{' on Piers' if 'says Piers' in said else ''}."


@tool("ask_human")
def ask_human(question: str) -> str:
    """Ask a human. The task is blocked until there is an answer."""
    return f"The human says {ask(question)}"


researcher = Agent(
    role="Researcher", goal="Find facts", backstory="Curious.", llm=Canned(model="canned"), tools=[ask_human]
)
research = Task(name="research", description="Research {guest}.", expected_output="Facts.", agent=researcher)
crew = Crew(agents=[researcher], tasks=[research])

with RedKey() as rk:
    handle = crewai.handler(crew, artifacts={"facts": "research"}, cost_usd=lambda used: used.total_tokens * 0.000003)
    rk.worker(queue=sys.argv[1], agent="crewai")(handle)
    rk.run()
