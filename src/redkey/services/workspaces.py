"""Workspaces: created with their first key in one unit, found by id. A workspace is one topic of the store."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import key_reused
from redkey.commands.draft import Ids
from redkey.commands.policies import SetPolicy
from redkey.commands.registry import CreateKey, CreateWorkspace, GrantCredits
from redkey.config import Config, Retry
from redkey.ledger import content
from redkey.ledger.ports import Content, Reader, SequencedStore, Unit
from redkey.readmodel.rows import entity
from redkey.reducers.entities import Workspace
from redkey.reducers.retrying import RetryPolicy, retry_delay
from redkey.reducers.world import World
from redkey.services import effects
from redkey.services.acts import directly
from redkey.services.keys import check_key
from redkey.services.outcome import Settled, settled
from redkey.services.signing import Signing
from redkey.services.unit_of_work import TopicWork
from redkey.wire.events import KeyCreated
from redkey.wire.ids import ulid
from redkey.wire.payload import request_key, with_key


class Begun(msgspec.Struct, frozen=True):
    """A new workspace: its topic, and its first records."""

    workspace_id: str
    topic: str
    records: list[Settled]
    repeated: bool = False

    @property
    def key_id(self) -> str:
        """Return the first key of the workspace."""
        payloads = (one.event.payload for one in self.records)
        return next(payload.key_id for payload in payloads if isinstance(payload, KeyCreated))


def new_workspace_id(ids: Ids, idem: str = "") -> str:
    """Return the id of a new workspace. It follows from the key of the request, so that a repeat gets the same."""
    return "wk_" + (_ulid_of(idem) if idem else ids.ulid())


def first_policy(config: Config) -> SetPolicy | None:
    """Return the policies that the configuration gives new workspaces; None if it gives none."""
    routes, stated = config.new_block_routes, config.retry
    retry = None
    if stated != Retry():
        delay = retry_delay(stated.delay_seconds, stated.backoff, stated.jitter, stated.longest_delay_seconds)
        retry = RetryPolicy(stated.max_attempts, delay)
    return SetPolicy(routes, retry=retry, defaults=True) if routes or retry is not None else None


class Founding(msgspec.Struct, frozen=True, kw_only=True):
    """Who creates a workspace, with which first key, and its terms at the start."""

    founder: Actor
    key: CreateKey
    name: Content | None = None
    # What the configuration gives new workspaces; from then on it is their own, and so is `self_approval`.
    policy: SetPolicy | None = None
    self_approval: bool = False
    # What the workspace may spend; 0 for no limit.
    credits: int = 0
    # The hashes of the request's idempotency key and body; empty without one.
    idem: str = ""
    body: str = ""


def begin_workspace(unit: Unit, topic: str, workspace_id: str, ids: Ids, signing: Signing, founding: Founding) -> Begun:
    """Create a workspace with its first key and its first checkpoint: an act on its new topic, whose fact
    `setting_of(workspace_id)` names it.

    A new workspace has no past in which a repeated request could be found. Its id follows from the request, and its
    topic from the id: for a repeat with the same key, the topic has records already.
    """
    if unit.head(topic).sequence:
        return _again(unit, workspace_id, topic, founding.body)
    name, key = founding.name, founding.key
    work = TopicWork(unit, topic, World(), ids)
    create = CreateWorkspace(workspace_id, content.ref(name) if name is not None else None, founding.self_approval)
    policies = (founding.policy,) if founding.policy is not None else ()
    grants = (GrantCredits(founding.credits),) if founding.credits else ()
    for command in (create, key, *policies, *grants):
        drafts = work.judge(command, founding.founder).drafts
        if founding.idem and command is create:
            drafts[0].payload = with_key(drafts[0].payload, founding.idem, founding.body)
        if drafts:
            work.note(drafts)
    work.finish()
    unit.put_content(topic, [name] if name is not None else [])
    effects.apply(unit, topic, key)
    signing.sign_in(unit, topic)
    return Begun(workspace_id, topic, work.records)


def begin_directly(store: SequencedStore, ids: Ids, signing: Signing, founding: Founding) -> Begun:
    """Create a workspace where no coordinator runs."""
    workspace_id = new_workspace_id(ids)
    topic = store.create_topic(fact=setting_of(workspace_id))
    return directly(store)(topic, lambda unit: begin_workspace(unit, topic, workspace_id, ids, signing, founding))


def check_visitor(unit: Reader, caller: Actor) -> None:
    """Refuse a caller whose key was revoked since the request was authenticated: before an act, or in a workspace not
    its own.

    Otherwise two operators that revoke each other's keys at once would both succeed, and lock themselves out.
    """
    if not caller.workspace_id:
        # The server itself, before there is any workspace.
        return
    topic = topic_of(unit, caller.workspace_id)
    if topic is None:
        check_key(None, caller)
    else:
        row = unit.row(topic, "key", caller.key_id)
        check_key(entity(row) if row is not None else None, caller)


def topic_of(reader: Reader, workspace_id: str) -> str | None:
    """Return the topic of a workspace; None if there is no such workspace."""
    return reader.setting(setting_of(workspace_id))


def setting_of(workspace_id: str) -> str:
    """Return the setting that names the topic of a workspace."""
    return f"workspace/{workspace_id}"


def workspaces(reader: Reader) -> Iterator[tuple[str, Workspace]]:
    """Yield every workspace with its topic, in the order they were created."""
    for topic in reader.topics():
        row = reader.row(topic, "workspace", "")
        if row is not None:
            yield topic, entity(row)


def _again(unit: Unit, workspace_id: str, topic: str, body: str) -> Begun:
    records = [settled(record) for record in unit.read(topic, 0, 2)]
    key = request_key(records[0].event.payload)
    if key is None or key[1] != body:
        raise key_reused()
    return Begun(workspace_id, topic, records, repeated=True)


def _ulid_of(idem: str) -> str:
    digest = sha256(f"workspace\n{idem}".encode()).digest()
    return ulid(int.from_bytes(digest[:6]), digest[6:16])
