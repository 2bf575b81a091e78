"""Receivers of events by HTTP: webhooks of a workspace, and A2A push notification configs of tasks.

Subscriptions are on the ledger, so every server knows them; deliveries are not (`redkey.services.outbox`).
"""

from __future__ import annotations

from typing import final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import Decision
from redkey.commands.policies import POLICY_RULES, check_rules, on_workspace
from redkey.reducers.world import World
from redkey.wire.events import PushRemoved, PushSet, Ref, WebhookRemoved, WebhookSet


@final
class SetWebhook(msgspec.Struct, frozen=True):
    """Create or change a webhook of the workspace."""

    webhook_id: str
    settings_ref: Ref


@final
class RemoveWebhook(msgspec.Struct, frozen=True):
    """Remove a webhook of the workspace: it gets no more events."""

    webhook_id: str


@final
class SetPush(msgspec.Struct, frozen=True):
    """Create or change a push notification config of a task."""

    push_id: str
    task_id: str
    settings_ref: Ref


@final
class RemovePush(msgspec.Struct, frozen=True):
    """Remove a push notification config of a task."""

    push_id: str
    task_id: str


WebhookCommand = SetWebhook | RemoveWebhook | SetPush | RemovePush


def decide_webhook(world: World, command: WebhookCommand, actor: Actor) -> Decision:
    """Record a webhook or push config, or its removal."""
    check_rules(world, POLICY_RULES)
    if type(command) is SetWebhook:
        payload: WebhookSet | WebhookRemoved | PushSet | PushRemoved = WebhookSet(
            webhook_id=command.webhook_id, settings_ref=command.settings_ref
        )
    elif type(command) is SetPush:
        payload = PushSet(push_id=command.push_id, task_id=command.task_id, settings_ref=command.settings_ref)
    elif type(command) is RemovePush:
        payload = PushRemoved(push_id=command.push_id, task_id=command.task_id)
    else:
        payload = WebhookRemoved(webhook_id=command.webhook_id)
    return on_workspace(world, payload, actor)
