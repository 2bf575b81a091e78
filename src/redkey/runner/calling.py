"""Call an agent once, with its unread messages in the prompt; stop it early for an urgent message.

By seed 000, a message of priority 1 that arrives while the agent works stops it. It starts again with the message in
its prompt. Messages are marked as read after the agent has run with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from redkey.client.worker import Block, Fail
from redkey.errors import AgentUnavailable, OutputRefused, PromptRefused, StepFailed, WireRefused
from redkey.runner.agent import Agent
from redkey.runner.attempt import Attempt
from redkey.runner.envelope import input_bytes, step_input
from redkey.runner.executors.port import Produced, Step
from redkey.runner.prompt import Message, Prompt, assemble
from redkey.runner.words import repeatable
from redkey.shapes.claims import FailureKind

_log = logging.getLogger("redkey.runner")
# Errors that fail the attempt; an answer without an envelope only costs a try.
_FAILURES: Final[dict[str, FailureKind]] = {
    "exit_code": "error",
    "timed_out": "timeout",
    "output_too_large": "error",
    "remote_failed": "error",
    "remote_rejected": "rejected",
}


async def call_agent(agent: Agent, attempt: Attempt) -> Produced:
    """Run the agent to its end.

    Raise Block or Fail if it cannot do this task, AgentUnavailable if it cannot do any task now, OutputRefused if it
    returns no envelope.
    """
    inbox = await attempt.mailbox.unread()
    for restarts_left in range(agent.habits.restarts, -1, -1):
        prompt = _prompt(agent, attempt, inbox)
        if not restarts_left:
            break
        ended = await _until_urgent(agent, attempt, prompt, inbox)
        if isinstance(ended, Produced):
            return await _ran(attempt, prompt, ended)
        inbox = ended
    return await _ran(attempt, prompt, await _call(agent, attempt, prompt))


async def _ran(attempt: Attempt, prompt: Prompt, produced: Produced) -> Produced:
    await attempt.mailbox.mark_read(prompt.messages)
    return produced


def _prompt(agent: Agent, attempt: Attempt, inbox: Sequence[Message]) -> Prompt:
    try:
        return assemble(
            agent.identity,
            attempt.brief,
            skills=agent.skills,
            memories=attempt.memories,
            inbox=inbox,
            outputs=attempt.task.outputs,
            description=attempt.task.description,
            remarks=[*attempt.remarks, *([attempt.conflict] if attempt.conflict is not None else [])],
            budget_tokens=agent.habits.budget_tokens,
        )
    except PromptRefused as refused:
        raise Block(f"The prompt cannot be built: {refused.message}", "resource") from refused


async def _until_urgent(
    agent: Agent, attempt: Attempt, prompt: Prompt, inbox: Sequence[Message]
) -> Produced | list[Message]:
    """Return what the agent produced, or the inbox if an urgent message stopped it."""
    shown = {one.message_id for one in inbox}
    calling = asyncio.create_task(_call(agent, attempt, prompt))
    watching = asyncio.create_task(attempt.mailbox.until_urgent(shown, agent.habits.inbox_seconds))
    try:
        await asyncio.wait({calling, watching}, return_when=asyncio.FIRST_COMPLETED)
        if calling.done():
            return calling.result()
        _log.info("%s is stopped for an urgent message", attempt.task.task_id)
        return watching.result()
    finally:
        for running in (calling, watching):
            running.cancel()
        await asyncio.gather(calling, watching, return_exceptions=True)


async def _call(agent: Agent, attempt: Attempt, prompt: Prompt) -> Produced:
    try:
        given = step_input(
            attempt.task,
            workflow=attempt.workflow,
            paths=attempt.paths,
            tries=attempt.tries,
            said=[*attempt.said, *attempt.findings],
        )
    except WireRefused as refused:
        text = f"The task's input does not fit into an envelope: {refused.pointer or '/'}: {refused.message}"
        raise Block(text, "spec_gap") from refused
    try:
        log = attempt.log.begin_try(attempt.tries, prompt.text, input_bytes(given)) if attempt.log is not None else None
        place = attempt.place
        step = Step(prompt.text, given, place.directory, attempt.meter, log, place.beside, attempt.task, attempt.say)
        produced = await agent.executor.run(step)
        agent.pauses.worked()
        return produced
    except AgentUnavailable:
        raise
    except StepFailed as failed:
        if failed.code == "spawn_failed":
            # Not the task's fault: the runner releases the task and pauses.
            text = f"The agent cannot be started: {failed.message}"
            raise AgentUnavailable(repeatable(text), code="start_failed") from failed
        agent.pauses.worked()
        if failed.code == "cost_cap":
            raise Block(failed.message, "resource", suggested_resolution="Raise the cap.") from failed
        if failed.code in _FAILURES:
            raise Fail(repeatable(failed.message), kind=_FAILURES[failed.code]) from failed
        raise OutputRefused(failed.message, code=failed.code) from failed
