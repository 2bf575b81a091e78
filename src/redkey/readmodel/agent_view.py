"""Agents and roles as the API shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.ledger.record import iso_time
from redkey.readmodel.view import Document, View, moment
from redkey.reducers.entities import Agent, Role
from redkey.shapes import roles


class EndpointView(View, frozen=True, kw_only=True):
    """Where an agent says it is reached."""

    url: str
    binding: str = ""
    protocol_version: str = ""


class SkillView(View, frozen=True, kw_only=True):
    """What an agent says it can do."""

    id: str
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()


class AuthRequirementView(View, frozen=True, kw_only=True):
    """How an agent asks its callers to authenticate."""

    name: str
    type: str = ""


class VerificationView(View, frozen=True, kw_only=True):
    """Whether anybody vouches for the card: the id of a pinned key that signed it, or an admin's word."""

    status: str
    key_id: str = ""


class AgentView(View, frozen=True, kw_only=True):
    """An agent: what its card says, which is data from a stranger, and what the ledger knows."""

    agent_id: str
    slug: str
    active: bool
    # Not heard of for a while; its next call brings it back.
    lost: bool
    name: str = ""
    description: str = ""
    framework: str = ""
    endpoint: str = ""
    endpoints: tuple[EndpointView, ...] = ()
    card_format: str = ""
    version: str = ""
    provider: str = ""
    capabilities: tuple[str, ...]
    skills: tuple[SkillView, ...] = ()
    auth_requirements: tuple[AuthRequirementView, ...] = ()
    features: tuple[str, ...] = ()
    verification: VerificationView
    # What the registration said; only a grant makes an agent eligible.
    eligible_roles: tuple[str, ...] = ()
    roles: tuple[str, ...]
    live_claims: int
    capacity: int | None = None
    in_use: int | None = None
    registered_at: str
    last_act_at: str
    card_url: str = ""
    card: dict[str, Any] | None = None
    erased: bool = False


def agent_view(agent: Agent, document: Document | None, *, whole: bool = False) -> AgentView:
    """An agent with what its card says; the card itself when the whole is asked for."""
    stated: dict[str, Any] = {}
    if document is not None:
        normal = document["normal"]
        endpoints = normal.get("endpoints", [])
        stated = {
            "name": normal["name"],
            "description": normal.get("description", ""),
            "framework": document.get("framework", ""),
            "endpoint": endpoints[0]["url"] if endpoints else "",
            "endpoints": msgspec.convert(endpoints, tuple[EndpointView, ...]),
            "card_format": normal["format"],
            "version": normal.get("version", ""),
            "provider": normal.get("provider", ""),
            "skills": msgspec.convert(normal.get("skills", []), tuple[SkillView, ...]),
            "auth_requirements": msgspec.convert(normal.get("authRequirements", []), tuple[AuthRequirementView, ...]),
            "features": tuple(normal.get("features", ())),
            "eligible_roles": tuple(document.get("eligibleRoles", ())),
            "card_url": document.get("agentCardUrl", ""),
            "card": document["agentCard"] if whole else None,
        }
    return AgentView(
        agent_id=agent.agent_id,
        slug=agent.slug,
        active=agent.active,
        lost=agent.lost,
        capabilities=agent.capabilities,
        verification=VerificationView(status=agent.verification, key_id=(document or {}).get("verifiedBy", "")),
        roles=agent.roles,
        live_claims=agent.live_claims,
        capacity=agent.capacity if agent.capacity >= 0 else None,
        in_use=agent.in_use if agent.in_use >= 0 else None,
        registered_at=iso_time(agent.registered_at),
        last_act_at=iso_time(agent.last_act_at),
        erased=document is None,
        **stated,
    )


def role_view(role: Role, document: Document | None) -> roles.Role:
    stated = document or {}
    return roles.Role(
        id=role.role_id,
        name=stated.get("name", ""),
        description=stated.get("description", ""),
        capabilities=role.capabilities,
        agents=role.agents,
        created_at=moment(role.created_at),
        erased=document is None and role.content_sha256 != "",
    )
