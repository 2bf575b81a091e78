"""Next steps: what the API says should be done, as the command that does it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redkey.shapes.problem import NextStep

# By the API's word for it; what is in braces is a field of the step.
_COMMANDS = {
    "activate_agent": "redkey agent activate {agent_id}",
    "approve_or_reject": "redkey gate show {detail}, then redkey gate approve or reject",
    "ask_for_activation": "ask an admin for: redkey agent activate {agent_id}",
    "ask_for_a_higher_cap": "ask an admin for: redkey workspace policy --cost-cap SCOPE=USD",
    "ask_for_another_lease": "ask for a lease of 5 seconds to 24 hours",
    "ask_for_role": "ask an admin for: redkey role grant {role_id} AGENT",
    "claim": "redkey claim take {task_id} --agent {agent_id}",
    "complete_dependency": "redkey task explain {task_id}",
    "complete_other_tasks": "redkey workflow show {detail}",
    "finish_a_claim": "complete, fail or release a claim that the agent holds",
    "grant_role": "redkey role grant {role_id} AGENT, or redkey agent register NAME --role {role_id}",
    "none": "",
    "poll_available_tasks": "redkey claim next --queue {queue_id}",
    "register_agent": "redkey agent register NAME, with: {detail}",
    "resume_queue": "redkey queue resume {queue_id}",
    "resume_workflow": "redkey workflow resume {detail}",
    "retry": "redkey task retry {task_id}",
    "start_agent": "start the process of agent {agent_id}",
    "unblock": "redkey task unblock {task_id} --answer ...",
    "wait": "redkey claim next --queue {queue_id} --wait 60",
    "wait_or_add_agents": "wait, or start more agents on {queue_id}",
}


def command_for(step: NextStep) -> str:
    """The command, or the words of a newer server as they are; nothing when there is nothing to do."""
    known = _COMMANDS.get(step.action)
    if known is None:
        return step.action.replace("_", " ")
    fields = {name: getattr(step, name) or "..." for name in ("queue_id", "role_id", "agent_id", "task_id", "detail")}
    return known.format(**fields)


def own_command() -> str:
    """Return how this shell calls this program: `redkey`, or its path where that name is not on the PATH."""
    program = Path(sys.argv[0])
    if program.name != "redkey" or not program.is_file():
        return "redkey"
    found = shutil.which("redkey")
    if found is not None and Path(found).resolve() == program.resolve():
        return "redkey"
    try:
        return str(program.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(program.absolute())
