"""Agents and roles as the API shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.ledger.record import iso_time
from redkey.readmodel.view import Document, moment
from redkey.reducers.entities import Agent, Role
from redkey.shapes import agents, roles
from redkey.shapes.agents import AgentVerification, AuthRequirement, Endpoint, RoleMatch, Skill

# What a card says in lists; nothing is known of a card that was erased.
_LISTS = ("endpoints", "skills", "auth_requirements", "features", "eligible_roles", "role_matches")


def agent_view(agent: Agent, document: Document | None, *, whole: bool = False) -> agents.Agent:
    """Show an agent with the fields of its card; `whole` adds the card itself."""
    stated: dict[str, Any] = dict.fromkeys(_LISTS, ())
    if document is not None:
        normal = document["normal"]
        endpoints = normal.get("endpoints", [])
        stated = {
            "name": normal["name"],
            "description": normal.get("description", ""),
            "framework": document.get("framework", ""),
            "endpoint": endpoints[0]["url"] if endpoints else "",
            "endpoints": msgspec.convert(endpoints, tuple[Endpoint, ...]),
            "card_format": normal["format"],
            "version": normal.get("version", ""),
            "provider": normal.get("provider", ""),
            "skills": msgspec.convert(normal.get("skills", []), tuple[Skill, ...]),
            "auth_requirements": msgspec.convert(normal.get("authRequirements", []), tuple[AuthRequirement, ...]),
            "features": tuple(normal.get("features", ())),
            "eligible_roles": tuple(document.get("eligibleRoles", ())),
            "role_matches": msgspec.convert(document.get("roleMatches", []), tuple[RoleMatch, ...]),
            "card_url": document.get("agentCardUrl", ""),
            "card": document["agentCard"] if whole else None,
        }
    return agents.Agent(
        agent_id=agent.agent_id,
        slug=agent.slug,
        active=agent.active,
        lost=agent.lost,
        capabilities=agent.capabilities,
        verification=AgentVerification(status=agent.verification, key_id=(document or {}).get("verifiedBy", "")),
        roles=agent.roles,
        live_claims=agent.live_claims,
        capacity=agent.capacity if agent.capacity >= 0 else None,
        in_use=agent.in_use if agent.in_use >= 0 else None,
        pause=agent.pause,
        paused_until=moment(agent.paused_until),
        account=agent.account,
        registered_at=iso_time(agent.registered_at),
        last_act_at=iso_time(agent.last_act_at),
        erased=document is None,
        **stated,
    )


def role_view(role: Role, document: Document | None) -> roles.Role:
    """Show a role."""
    stated = document or {}
    return roles.Role(
        role_id=role.role_id,
        id=role.role_id,
        name=stated.get("name", ""),
        description=stated.get("description", ""),
        capabilities=role.capabilities,
        agents=role.agents,
        created_at=moment(role.created_at),
        erased=document is None and role.content_sha256 != "",
    )
