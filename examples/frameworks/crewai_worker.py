"""A CrewAI crew on a queue, through the adapter. `python3 crewai_worker.py QUEUE`."""

import sys
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task

from redkey.adapters import crewai
from redkey.client import RedKey


class Canned(BaseLLM):
    """Replaces a model, so that this runs without a key. To use a real one: Agent(llm="anthropic/...")."""

    def call(self, *_: Any, **__: Any) -> str:
        return "Thought: I know it.\nFinal Answer: Five facts."


researcher = Agent(role="Researcher", goal="Find facts", backstory="Curious.", llm=Canned(model="canned"))
research = Task(name="research", description="Research {guest}.", expected_output="Facts.", agent=researcher)
crew = Crew(agents=[researcher], tasks=[research])

with RedKey() as rk:
    handle = crewai.handler(crew, artifacts={"facts": "research"}, cost_usd=lambda used: used.total_tokens * 0.000003)
    rk.worker(queue=sys.argv[1], agent="crewai")(handle)
    rk.run()
