"""Tools for messages: the inbox, which is on the ledger and waits for its reader, and the live bus of this project."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from redkey.mcp.results import (
    BusAgentInfo,
    BusAgents,
    BusMessageInfo,
    BusMessages,
    Inbox,
    MessageInfo,
    SentInfo,
    SentReply,
)
from redkey.mcp.session import Sessions
from redkey.mcp.work_tools import LONGEST_WAIT_SECONDS, Extensions


class InboxTools:
    """Messages that wait for their reader."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def send_message(
        self,
        ctx: Context[Any, Any],
        to: Annotated[str, Field(description="An agent (name or id), a role, or `human`.")],
        subject: Annotated[str, Field(min_length=1, description="The subject, in one line.")],
        body: Annotated[str, Field(description="The message.")] = "",
        about_task: Annotated[str, Field(description="The task it is about.")] = "",
        action_required: Annotated[bool, Field(description="Whether the reader has to do something.")] = False,
        extensions: Extensions = None,
    ) -> SentReply:
        """Send a message to the inbox of an agent, of all agents with a role, or of the humans."""
        async with self._sessions.open(ctx) as session:
            sent = await session.client.inbox.send(
                to,
                subject,
                body=body or None,
                ref_task_id=about_task or None,
                action_required=action_required or None,
                agent_id=session.agent_id,
                extensions=extensions,
            )
            info = SentInfo(message_id=sent.message_id, recipients=[message.to for message in sent.messages])
            return SentReply(message=info)

    async def read_inbox(
        self,
        ctx: Context[Any, Any],
        mark_read: Annotated[bool, Field(description="Whether to mark them as read.")] = True,
        limit: Annotated[int, Field(ge=1, le=100, description="The largest number to read.")] = 20,
        extensions: Extensions = None,
    ) -> Inbox:
        """Read your unread messages."""
        async with self._sessions.open(ctx) as session:
            page = await session.client.inbox.list(to=session.agent_id, unread=True, limit=limit).page()
            if mark_read:
                for message in page.items:
                    await session.client.inbox.read(message.message_id, extensions=extensions)
            return Inbox(messages=[MessageInfo.of(message) for message in page.items])


class Bus(Protocol):
    """The live session of this project, joined at its first use."""

    async def send(self, ctx: Context[Any, Any], to: str, text: str) -> str: ...

    async def receive(self, ctx: Context[Any, Any], wait_seconds: float) -> list[tuple[str, str, str]]: ...

    async def agents(self, ctx: Context[Any, Any]) -> tuple[str, str, list[tuple[str, str]]]: ...


class BusTools:
    """Live messages between agents in different terminals."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def bus_send(
        self,
        ctx: Context[Any, Any],
        to: Annotated[str, Field(description="An agent of bus_agents, or `all`.")],
        text: Annotated[str, Field(min_length=1, description="The message.")],
    ) -> SentReply:
        """Send a live message to an agent in another terminal of this project. Its next bus_receive returns it."""
        return SentReply(message=SentInfo(message_id=await self._bus.send(ctx, to, text), recipients=[to]))

    async def bus_receive(
        self,
        ctx: Context[Any, Any],
        wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS, description="How long to wait.")] = 0,
    ) -> BusMessages:
        """Get the live messages that other agents sent you; wait_seconds waits for one."""
        received = await self._bus.receive(ctx, wait_seconds)
        step = "Answer with bus_send where an answer is expected." if received else "Nothing yet. This is normal."
        messages = [BusMessageInfo(message_id=key, sender=sender, text=text) for key, sender, text in received]
        return BusMessages(messages=messages, next_step=step)

    async def bus_agents(self, ctx: Context[Any, Any]) -> BusAgents:
        """List the agents in the live session of this project."""
        session, you, agents = await self._bus.agents(ctx)
        if not session:
            raise ToolError("There is no live session. Call this again.")
        return BusAgents(
            session=session, you=you, agents=[BusAgentInfo(agent=agent, name=name) for agent, name in agents]
        )
