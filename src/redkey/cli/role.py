"""`redkey role`: who may claim what."""

from __future__ import annotations

from redkey.cli.declared import declared_group
from redkey.cli.look import Look

command = declared_group(
    "role",
    "Create roles, and grant them to agents. Only a grant makes an agent eligible.",
    {
        "create": Look(told="{id}", next_step="redkey agent register {name}-1 --role {id}"),
        "list": Look(
            parts={
                "ROLE": "id",
                "AGENTS": lambda role: len(role.agents),
                "CAPABILITIES": "capabilities",
                "NAME": "name",
            },
            empty="no roles yet: redkey role create NAME",
        ),
        "show": Look(
            parts={
                "role": "id",
                "name": "name",
                "description": "description",
                "capabilities": "capabilities",
                "agents": "agents",
                "created": "created_at",
            },
            names_agents=True,
        ),
        "grant": Look(told="{agent} has {role_id}"),
        "revoke": Look(told="{agent} no longer has {role_id}"),
    },
)
