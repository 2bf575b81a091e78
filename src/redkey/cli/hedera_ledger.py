"""`redkey hedera workspace|party|topic ...`: operator commands for network-ordered workspaces."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.screen import print_created, print_details, print_done, print_list
from redkey.cli.session import daily, ids_option, json_option

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.client.request import Request


def _send(rk: RedKey, request: Request[Any]) -> Any:
    """Call an endpoint of the server that the SDK has no method for."""
    return rk._sender.send(request)


@click.group()
def workspace() -> None:
    """Create network-ordered workspaces, follow those of others, and show their ledgers. For operators."""


@workspace.command()
@click.option("--name", help="A name for people.")
@click.option("--topic", metavar="0.0.N", help="The topic of a customer [a new one of the server's account].")
@click.option("--account", metavar="0.0.N", help="The customer's account.")
@ids_option
@daily
def begin(rk: RedKey, name: str | None, topic: str | None, account: str | None, ids_only: bool, as_json: bool) -> None:
    """Begin a workspace that a topic of the network orders, and print its first key, which is shown once.

    \b
      redkey hedera workspace begin --name Podcast
      redkey hedera workspace begin --topic 0.0.4711 --account 0.0.3003
    """
    from redkey.wire.ids import ulid

    workspace_id = "wk_" + ulid(time.time_ns() // 1_000_000, os.urandom(10))
    asked = {"name": name, "topic": topic, "account": account, "owner": "customer" if topic else "managed"}
    reply = _send(rk, _put_ledger(workspace_id, asked))
    text = f"{reply.workspace_id} {reply.status} on topic {reply.topic} of {reply.network}"
    told = f"{text}\nkey: {reply.api_key}" if reply.api_key else text
    print_created(reply, reply.workspace_id, told, ids_only=ids_only, as_json=as_json)


@workspace.command()
@click.argument("workspace_id", metavar="WORKSPACE")
@click.option("--topic", metavar="0.0.N", required=True, help="The topic that orders it.")
@daily
def follow(rk: RedKey, workspace_id: str, topic: str, as_json: bool) -> None:
    """Follow a workspace that another organisation began; its operator lets your account write (party add).

    \b
      redkey hedera workspace follow wk_01JTMX9A2B3C4D5E6F7G8H9JKR --topic 0.0.4711
    """
    reply = _send(rk, _put_ledger(workspace_id, {"topic": topic}))
    print_done(reply, f"{reply.workspace_id} {reply.status} on topic {reply.topic} of {reply.network}", as_json=as_json)


@workspace.command()
@click.argument("workspace_id", metavar="WORKSPACE")
@daily
def show(rk: RedKey, workspace_id: str, as_json: bool) -> None:
    """Show what orders a workspace, how far it has been read, what it costs and who may write."""
    from redkey.client.request import at, get
    from redkey.services.ordered.operations import Ledger

    found = _send(rk, get(at("workspaces", workspace_id, "ledger"), Ledger))
    facts = (
        ("order", f"{found.topic} of {found.network}" if found.topic else "local"),
        ("records", f"{found.records:,} of {found.read_to:,} messages" if found.topic else f"{found.records:,}"),
        ("account", found.account),
        ("waits for", found.waits_for),
        ("failure", found.failure or found.price_failure),
        ("bodies wanted", found.bodies_wanted or None),
        ("paid", f"${found.spending.usd:,.6f} ({found.spending.tinybars:,} tinybars)"),
        ("parties", ", ".join(one.account for one in found.parties)),
        ("topics", ", ".join(f"{one.topic} ({one.use}, {one.owner})" for one in found.topics)),
    )
    print_details(found, facts, as_json=as_json)


@click.group()
def party() -> None:
    """Say which accounts may write on the topic of a workspace. For operators."""


@party.command()
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("account", metavar="0.0.N")
@click.option("--agent", "agent_id", metavar="AGENT", help="The agent that it writes as [a server of the operator].")
@daily
def add(rk: RedKey, workspace_id: str, account: str, agent_id: str | None, as_json: bool) -> None:
    """Allow an account to write: on the ledger, and on the network if the server owns the topic."""
    from redkey.client.request import at, post
    from redkey.services.ordered.operations import PartyChange

    path = at("workspaces", workspace_id, "ledger", "parties")
    reply = _send(rk, post(path, PartyChange, account=account, agent_id=agent_id))
    print_done(reply, f"{account} may write in {workspace_id}", as_json=as_json)


@party.command()
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("account", metavar="0.0.N")
@daily
def remove(rk: RedKey, workspace_id: str, account: str, as_json: bool) -> None:
    """Remove an account's right to write."""
    from redkey.client.request import at, delete
    from redkey.services.ordered.operations import PartyChange

    reply = _send(rk, delete(at("workspaces", workspace_id, "ledger", "parties", account), PartyChange))
    print_done(reply, f"{account} may not write in {workspace_id} any more", as_json=as_json)


@click.command("list")
@click.argument("workspace_id", metavar="WORKSPACE")
@daily
@ids_option
def list_topics(rk: RedKey, workspace_id: str, as_json: bool, ids_only: bool) -> None:
    """List the topics that belong to a workspace."""
    from redkey.client.request import at, get
    from redkey.services.ordered.operations import LedgerTopic
    from redkey.shapes.fields import Page

    found = _send(rk, get(at("workspaces", workspace_id, "ledger", "topics"), Page[LedgerTopic]))
    columns = ("TOPIC", "NETWORK", "USE", "OWNER", "RETIRED")
    print_list(
        found.items,
        columns,
        lambda one: (one.topic, one.network, one.use, one.owner, one.retired_at or ""),
        as_json=as_json,
        ids_only=ids_only,
        empty="no topic of a network belongs to this workspace",
    )


@click.command("retire")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("topic", metavar="0.0.N")
@click.option("--delete", "delete", is_flag=True, help="Delete the topic on the network too.")
@daily
def retire_topic(rk: RedKey, workspace_id: str, topic: str, delete: bool, as_json: bool) -> None:
    """Retire a topic: later messages on it are ignored. This cannot be undone."""
    reply = _send(rk, _topic_change(workspace_id, topic, "retire", delete=delete))
    print_done(reply, f"topic {topic} retired", as_json=as_json)


@click.command("record-owner")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("topic", metavar="0.0.N")
@click.argument("account", metavar="ACCOUNT")
@daily
def record_owner(rk: RedKey, workspace_id: str, topic: str, account: str, as_json: bool) -> None:
    """Record the new owner of a topic, as the network shows it after `topic hand-over`."""
    reply = _send(rk, _topic_change(workspace_id, topic, "hand-over", account=account))
    print_done(reply, f"topic {topic} belongs to {account}", as_json=as_json)


@click.command("hand-over")
@click.argument("topic", metavar="0.0.N")
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The TOML file with the table [hedera] [REDKEY_CONFIG, else redkey.toml here].",
)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file with the new owner's private key, which the network asks to sign too.",
)
@click.option("--keeps-writing/--writes-no-more", default=True, help="Whether the server may still write.")
@json_option
def hand_over_topic(topic: str, file: Path | None, key_file: Path, keeps_writing: bool, as_json: bool) -> None:
    """Give a topic of the server's account to another owner, on the network.

    \b
      redkey hedera topic hand-over 0.0.4711 --key-file customer.key
      redkey hedera topic record-owner WORKSPACE 0.0.4711 0.0.3003
    """
    from redkey.config import config_file, load
    from redkey.hedera.opening import open_network, read_key
    from redkey.hedera.topics import hand_over

    network = open_network(load(config_file(file, os.environ), os.environ, {}).hedera)
    try:
        hand_over(network, topic, read_key(key_file), keeps_writing=keeps_writing)
        told = f"topic {topic} has the key of its new owner"
        print_done({"topic": topic, "writes": keeps_writing}, told, as_json=as_json)
    finally:
        network.close()


def _put_ledger(workspace_id: str, asked: dict[str, Any]) -> Request[Any]:
    import msgspec

    from redkey.client.request import at, post
    from redkey.services.ordered.operations import Ordered

    request = post(at("workspaces", workspace_id, "ledger"), Ordered, **asked)
    return msgspec.structs.replace(request, method="PUT")


def _topic_change(workspace_id: str, topic: str, act: str, **body: Any) -> Request[Any]:
    from redkey.client.request import at, post
    from redkey.services.ordered.operations import TopicChange

    return post(at("workspaces", workspace_id, "ledger", "topics", topic, act), TopicChange, **body)
