"""The ledger of a workspace for operators: what orders it, its topics, who may write there."""

from __future__ import annotations

import re

from redkey.commands.decision import Refused, not_found, wrong
from redkey.commands.policies import AddParty, AssignTopic, RemoveParty, RetireTopic
from redkey.ledger.fees import DELETE_TOPIC, UPDATE_TOPIC, USD
from redkey.ledger.network import is_projected
from redkey.readmodel.rows import entity
from redkey.reducers.entities import Topic
from redkey.services.caller import Caller, Pending
from redkey.services.network_fees import read_book
from redkey.services.ordered.bodies import wanted_bodies
from redkey.services.ordered.hosting import Orders
from redkey.services.ordered.messages import left_out, read_cursor
from redkey.services.ordered.operations import (
    ADD_PARTY,
    GET_LEDGER,
    HAND_OVER_TOPIC,
    LIST_LEDGER_TOPICS,
    LIST_LEFT_OUT,
    ORDER_WORKSPACE,
    REMOVE_PARTY,
    RETIRE_TOPIC,
    HandOver,
    Ledger,
    LedgerParty,
    LedgerSpending,
    LedgerTopic,
    LeftOut,
    NewParty,
    Ordered,
    OrderRequest,
    PartyChange,
    Retirement,
    TopicChange,
)
from redkey.services.use_case import use_case
from redkey.services.use_cases.ordered_workspaces import begin_ordered, orders_of
from redkey.services.use_cases.workspaces import workspace_at, workspace_topic
from redkey.shapes.fields import Page, PageQuery
from redkey.wire.times import write_time

_PARTIES = 500
_WORKSPACE_ID = re.compile("wk_[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)


@use_case(GET_LEDGER)
def get_ledger(caller: Caller, workspace_id: str) -> Ledger:
    """Show the ledger of a workspace as this server has it."""
    store, topic = caller.means.store, workspace_topic(caller, workspace_id)
    workspace, orders = workspace_at(caller, topic), caller.means.orders
    driver = orders.driver(topic) if orders is not None else None
    assigned = next((one for one in workspace.topics.values() if one.use == "order"), None)
    book = read_book(store, topic)
    parties = [entity(row) for row in store.rows(topic, "party", limit=_PARTIES)]
    return Ledger(
        workspace_id=workspace_id,
        order="network" if is_projected(topic) else "local",
        local_topic=topic,
        records=store.head(topic).sequence,
        operator=workspace.operator,
        account=driver.network.payer if driver is not None else None,
        network=driver.network.network if driver is not None else assigned.network if assigned is not None else None,
        topic=driver.network.topic if driver is not None else assigned.topic if assigned is not None else None,
        read_to=read_cursor(store, topic).sequence,
        waits_for=(driver.waits_for or None) if driver is not None else None,
        failure=(driver.failure or None) if driver is not None else "not_connected" if is_projected(topic) else None,
        price_failure=(driver.price_failure or None) if driver is not None else None,
        noticed=dict(driver.network.noticed) if driver is not None else {},
        bodies_wanted=len(wanted_bodies(store, topic)),
        spending=LedgerSpending(
            messages=book.messages,
            usd=book.tinycents / USD,
            reserved_usd=book.reserved / USD,
            tinybars=book.tinybars,
        ),
        topics=tuple(map(_topic, workspace.topics.values())),
        parties=tuple(
            LedgerParty(account=one.payer, agent_id=one.agent_id or None, added_at=write_time(one.added_at))
            for one in parties
            if not one.removed_at
        ),
    )


@use_case(ORDER_WORKSPACE)
async def orderworkspace_at(caller: Caller, workspace_id: str, asked: OrderRequest) -> Ordered:
    """Begin a workspace on a topic, or follow the existing one."""
    if not _WORKSPACE_ID.fullmatch(workspace_id):
        raise wrong("id_invalid", "/workspaceId", "a workspace id is wk_ and a ULID; redkey hedera workspace draws one")
    if asked.owner == "customer" and not asked.topic:
        raise wrong("topic_missing", "/topic", "a customer's topic exists already: name it")
    return await begin_ordered(caller, workspace_id, asked)


@use_case(LIST_LEDGER_TOPICS)
def list_ledger_topics(caller: Caller, workspace_id: str) -> Page[LedgerTopic]:
    """List the topics of public networks that belong to a workspace."""
    workspace = workspace_at(caller, workspace_topic(caller, workspace_id))
    return Page(tuple(map(_topic, workspace.topics.values())))


@use_case(HAND_OVER_TOPIC)
async def hand_over_topic(caller: Caller, workspace_id: str, topic: str, asked: HandOver) -> TopicChange:
    """Record that a topic belongs to a customer now, after checking that the network shows it."""
    orders, local = orders_of(caller), workspace_topic(caller, workspace_id)
    assigned = _assigned(caller, local, orders, topic)
    facts = await orders.in_thread(lambda: orders.topics.describe(topic))
    key = await orders.in_thread(lambda: orders.topics.account_key(asked.account))
    if not key:
        detail = f"There is no account {asked.account} with one key on {orders.topics.name}; check the id."
        raise Refused(422, "account_unknown", detail, "/account")
    if facts is None or facts.admin_key != key:
        detail = (
            f"The network does not show {topic} as the account's yet. Let its key sign: redkey hedera topic hand-over "
            f"{topic} --key-file FILE; then repeat this."
        )
        raise Refused(409, "topic_not_theirs", detail)
    driver = orders.driver(local)
    if driver is not None and driver.network.topic == topic and assigned.owner == "managed":
        await orders.book_change(driver)
    command = AssignTopic(topic, assigned.network, assigned.use, "customer", asked.account)
    return await caller.settled(
        Pending(
            command,
            lambda outcome, _: TopicChange(status="assigned", topic=topic, event_id=outcome.event_id),
            topic=local,
        )
    )


@use_case(RETIRE_TOPIC)
async def retire_topic(caller: Caller, workspace_id: str, topic: str, asked: Retirement) -> TopicChange:
    """Stop using a topic; delete it on the network if the request says so."""
    orders, local = orders_of(caller), workspace_topic(caller, workspace_id)
    assigned = _assigned(caller, local, orders, topic)
    if asked.delete:
        facts = await orders.in_thread(lambda: orders.topics.describe(topic))
        if facts is not None and not facts.is_ours:
            detail = f"The topic {topic} is not this server's: its owner deletes it. Retire it without `delete`."
            raise Refused(409, "topic_foreign", detail, "/delete")
    change = await caller.settled(
        Pending(
            RetireTopic(topic, assigned.network),
            lambda outcome, _: TopicChange(status="retired", topic=topic, event_id=outcome.event_id),
            topic=local,
        )
    )
    driver = orders.driver(local)
    if asked.delete and driver is not None:
        await orders.change(driver, DELETE_TOPIC, lambda name: orders.topics.delete(topic, name))
    return change


@use_case(ADD_PARTY)
async def add_party(caller: Caller, workspace_id: str, new: NewParty) -> PartyChange:
    """Let an account write to the topic of a workspace: on the network, if the topic is this server's, and on the
    record.
    """
    topic = workspace_topic(caller, workspace_id)
    if new.account not in _accounts(caller, topic):
        await _allow(caller, topic, {*_accounts(caller, topic), new.account})
    return await caller.settled(
        Pending(
            AddParty(new.account, new.agent_id or ""),
            lambda outcome, _: PartyChange(status="added", account=new.account, event_id=outcome.event_id),
            topic=topic,
        )
    )


@use_case(REMOVE_PARTY)
async def remove_party(caller: Caller, workspace_id: str, account: str) -> PartyChange:
    """Take the right to write from an account: on the record first, then on the network."""
    topic = workspace_topic(caller, workspace_id)
    change = await caller.settled(
        Pending(
            RemoveParty(account),
            lambda outcome, _: PartyChange(status="removed", account=account, event_id=outcome.event_id),
            topic=topic,
        )
    )
    await _allow(caller, topic, _accounts(caller, topic))
    return change


def _accounts(caller: Caller, topic: str) -> set[str]:
    """List the accounts that may write beside the operator."""
    return {one.payer for one in caller.means.coordinator.peek(topic).parties.values()}


async def _allow(caller: Caller, topic: str, accounts: set[str]) -> None:
    """Change who may write on the network; a customer's topic is for its owner to change."""
    orders = caller.means.orders
    driver = orders.driver(topic) if orders is not None else None
    if orders is None or driver is None:
        return
    name = driver.network.topic
    facts = await orders.in_thread(lambda: orders.topics.describe(name))
    if facts is not None and facts.is_ours:
        allowed = sorted(accounts - {driver.network.payer})
        await orders.change(driver, UPDATE_TOPIC, lambda transaction: orders.topics.allow(name, allowed, transaction))


@use_case(LIST_LEFT_OUT)
def list_left_out(caller: Caller, workspace_id: str, asked: PageQuery) -> Page[LeftOut]:
    """List messages that left no record, with their reasons."""
    topic = workspace_topic(caller, workspace_id)
    if asked.after and not asked.after.isdecimal():
        raise wrong("cursor_invalid", "/after", "give the `next` of the page before")
    rows = left_out(caller.means.store, topic, int(asked.after or 0), asked.limit + 1)
    items = tuple(
        LeftOut(
            sequence=row.sequence,
            consensus_at=write_time(row.timestamp),
            account=row.payer,
            reason=row.void,
        )
        for row in rows[: asked.limit]
    )
    return Page(items, str(items[-1].sequence) if len(rows) > asked.limit else None)


def _assigned(caller: Caller, local: str, orders: Orders, topic: str) -> Topic:
    """Return a topic of a workspace that is in use; not found for any other."""
    found = workspace_at(caller, local).topics.get(f"{orders.topics.name}/{topic}")
    if found is None or found.retired_at:
        raise not_found("topic")
    return found


def _topic(one: Topic) -> LedgerTopic:
    return LedgerTopic(
        topic=one.topic,
        network=one.network,
        use=one.use,
        owner=one.owner,
        account=one.account or None,
        assigned_at=write_time(one.assigned_at),
        retired_at=write_time(one.retired_at) if one.retired_at else None,
    )
