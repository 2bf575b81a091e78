"""The MCP server: its list of tools, resources and prompts, and how every failure becomes a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from redkey import __version__
from redkey.errors import ApiError, Forbidden, RedKeyError, Unauthorized, Unreachable
from redkey.mcp.plan_tools import PlanTools
from redkey.mcp.prompts import INSTRUCTIONS, Prompts, Resources
from redkey.mcp.session import Sessions
from redkey.mcp.talk_tools import Bus, BusTools, InboxTools
from redkey.mcp.work_tools import LONGEST_WAIT_SECONDS, WorkTools

# Hosts give up after a minute: the model must get an answer before that.
_LONGEST_SECONDS = LONGEST_WAIT_SECONDS + 5
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def build(sessions: Sessions, bus: Bus | None = None) -> RedKeyTools:
    """Build the server for one transport; with `bus`, agents of this machine can exchange live messages."""
    server = RedKeyTools("redkey", title="RedKey", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    work, plan, inbox = WorkTools(sessions), PlanTools(sessions), InboxTools(sessions)
    tools: tuple[tuple[ToolAnnotations, tuple[Callable[..., Any], ...]], ...] = (
        (_ADDS, (work.wait_for_task, work.claim_task, work.report_progress, work.add_artifact)),
        (_ENDS, (work.complete_task, work.fail_task, work.block_task, work.release_task, plan.decide_approval)),
        (_ADDS, (plan.create_task, plan.start_plan, inbox.send_message, inbox.read_inbox)),
        (_READS, (work.get_artifact, plan.list_tasks, plan.explain_task, plan.list_approvals, plan.get_receipt)),
    )
    for hints, group in tools:
        for tool in group:
            server.add(tool, hints)
    if bus is not None:
        live = BusTools(bus)
        server.add(live.bus_send, _ADDS)
        server.add(live.bus_receive, _ADDS)
        server.add(live.bus_agents, _READS)
    prompts, resources = Prompts(), Resources(sessions)
    for prompt in (prompts.work_the_queue, prompts.plan_this_goal, prompts.review_and_approve):
        server.prompt(name=prompt.__name__, title=prompt.__name__.replace("_", " ").capitalize())(prompt)
    for view in (resources.task, resources.plan, resources.queue):
        name = view.__name__
        server.resource(f"redkey://{name}/{{id}}", name=name, mime_type="application/json")(view)
    return server


class RedKeyTools(MCPServer[Any]):
    """An MCP server whose errors say the next step, and whose tools refuse unknown arguments."""

    def add(self, tool: Callable[..., Any], annotations: ToolAnnotations) -> None:
        """Register a tool under the name of its function."""
        name = tool.__name__
        title = name.replace("_", " ").capitalize()
        description = " ".join((tool.__doc__ or "").split())
        self.add_tool(tool, name=name, title=title, description=description, annotations=annotations)
        registered = self._tool_manager.get_tool(name)
        if registered is None:
            raise AssertionError("a tool that was not registered")
        registered.parameters["additionalProperties"] = False

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """Call a tool; every error becomes a ToolError that a model can act on."""
        self._check(name, arguments)
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                return await super().call_tool(name, arguments, context)
        except TimeoutError:
            raise ToolError(f"{name} took longer than {_LONGEST_SECONDS:.0f} seconds. Call it again.") from None
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(f"{name}: {_wrong_arguments(cause)} Correct them, then call it again.") from cause
            if isinstance(error, UnexpectedToolError) and isinstance(cause, RedKeyError):
                raise ToolError(sentence(cause)) from cause
            # The tool's own sentence, without a prefix.
            raise ToolError(str(cause)) if isinstance(cause, ToolError) else error from cause

    def _check(self, name: str, arguments: dict[str, Any]) -> None:
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            known = ", ".join(sorted(tool.name for tool in self._tool_manager.list_tools()))
            raise ToolError(f"There is no tool {name[:64]!r}. The tools are: {known}.")
        parameters = tool.parameters.get("properties", {})
        unknown = [argument for argument in arguments if argument not in parameters]
        if unknown:
            accepted = ", ".join(parameters) or "none"
            raise ToolError(f"{name} has no argument {unknown[0][:64]!r}. Its arguments are: {accepted}.")


def _wrong_arguments(cause: ValidationError) -> str:
    return " ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}."
        for error in cause.errors(include_input=False)[:8]
    )


def sentence(refused: RedKeyError) -> str:
    """Describe a refusal for a model: what is wrong, its code, and the next step."""
    if isinstance(refused, Unreachable):
        return (
            f"The RedKey server did not answer ({refused.message}). Call this again in a moment; if it still does not "
            "answer, ask a person to run `redkey serve` or `redkey status`."
        )
    if isinstance(refused, Unauthorized):
        return (
            f"The RedKey server does not accept this key ({refused.code}): it has expired or was revoked. Ask a person "
            "for a new one: `redkey key create`, or `redkey mcp install` again."
        )
    if isinstance(refused, Forbidden):
        return f"This agent may not do that: {refused.detail} Ask a person with an admin key to do it. [{refused.code}]"
    if not isinstance(refused, ApiError):
        return f"{refused.message} [{refused.code}]"
    sentences = {refused.detail: None}
    sentences.update(
        {f"{error.pointer}: {error.message}": None for error in refused.errors[:8] if error.message != refused.detail}
    )
    text = " ".join(f"{part.rstrip('.')}." for part in (*sentences, refused.advice) if part)
    return f"{text} [{refused.code}]"
