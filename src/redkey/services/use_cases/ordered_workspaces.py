"""Workspaces that a network orders: begun on a topic, or followed on one that another organisation began."""

from __future__ import annotations

import asyncio

from redkey.commands.decision import Refused
from redkey.commands.policies import AssignTopic, SetPolicy
from redkey.commands.registry import CreateWorkspace
from redkey.ledger import content
from redkey.readmodel.rows import entity
from redkey.services.caller import Caller, Pending
from redkey.services.ordered.driver import OrderedTopic
from redkey.services.ordered.hosting import Orders
from redkey.services.ordered.operations import Ordered, OrderRequest
from redkey.services.outcome import Outcome
from redkey.services.use_cases.new_key import new_key
from redkey.services.use_cases.texts import keep
from redkey.services.workspaces import check_visitor, first_policy
from redkey.wire.events import KeyCreated


def orders_of(caller: Caller) -> Orders:
    """Return the ordered workspaces of this server; Refused if it has no network."""
    if caller.means.orders is None:
        detail = "This server has no network: set `hedera.network`, `hedera.operator` and `hedera.key_file`."
        raise Refused(409, "network_not_configured", detail)
    return caller.means.orders


async def begin_ordered(caller: Caller, workspace_id: str, asked: OrderRequest) -> Ordered:
    """Begin a workspace on a topic, or follow it if the topic has it. Every step can be repeated after a crash."""
    orders = orders_of(caller)
    # Before anything is paid for; each unit checks once more.
    check_visitor(caller.means.store, caller.actor)
    driver = await orders.prepare(workspace_id, asked.topic or "")
    done = Ordered(
        status="followed", workspace_id=workspace_id, network=driver.network.network, topic=driver.network.topic
    )
    row = caller.means.store.row(driver.topic, "workspace", "")
    workspace = entity(row) if row is not None else None
    # Begun by another organisation, or completely by this one; an incomplete one of this server is finished.
    is_half = workspace is not None and workspace.operator == driver.network.payer and not workspace.is_ordered
    if workspace is not None and not is_half and not _is_repeat(caller, driver):
        return done
    key = await _begin(caller, workspace_id, driver, asked)
    return Ordered(
        status="begun",
        workspace_id=workspace_id,
        network=done.network,
        topic=done.topic,
        key_id=key.key_id,
        api_key=caller.means.keys.text(key.key_id),
    )


def _is_repeat(caller: Caller, driver: OrderedTopic) -> bool:
    """True if an earlier copy of this request has created the workspace's first key."""
    idem = caller.part_of("key")
    return bool(idem) and idem in caller.means.coordinator.peek(driver.topic).done


async def _begin(caller: Caller, workspace_id: str, driver: OrderedTopic, asked: OrderRequest) -> KeyCreated:
    """Submit the first messages of a workspace: itself, then its topic, its policies and its first key."""
    means, topic = caller.means, driver.topic
    name = keep(caller, {"name": asked.name})[1] if asked.name is not None else None
    if not means.coordinator.peek(topic).workspace.workspace_id:
        create = CreateWorkspace(workspace_id, content.ref(name) if name is not None else None)
        contents = () if name is None else (name,)
        await caller.settled(Pending(create, _nothing, contents, part="workspace", topic=topic))
    assign = AssignTopic(driver.network.topic, driver.network.network, "order", asked.owner, asked.account or "")
    policy: SetPolicy | None = first_policy(means.config)
    first = [Pending(assign, _nothing, part="topic", topic=topic)]
    first += [Pending(policy, _nothing, part="policy", topic=topic)] if policy is not None else []
    others = [asyncio.ensure_future(caller.settled(one)) for one in first]
    key = await caller.settled(Pending(new_key(caller, ("admin",)), _key, part="key", topic=topic))
    await asyncio.gather(*others)
    return key


def _key(outcome: Outcome, _: object) -> KeyCreated:
    return outcome.payload(KeyCreated)


def _nothing(outcome: Outcome, _: object) -> None:
    """Return no reply: the caller builds its reply later."""
