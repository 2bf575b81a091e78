"""Webhooks by their use cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.webhooks import (
    create_webhook,
    get_webhook,
    list_webhooks,
    remove_webhook,
    resume_webhook,
)
from redkey.shapes.webhooks import NewWebhook, WebhookQuery
from tests.harness.callers import Callers, with_callers

# An address that needs no lookup.
URL = "https://93.184.216.34/hook"


def test_a_webhook_is_created_shown_and_removed(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        new = NewWebhook(receiver_url=URL, types=("task.complete",), description="Tells the shop.")
        made = await callers.call(create_webhook, new)
        assert made.secret
        assert made.secret not in repr(made)
        shown = await callers.call(get_webhook, made.webhook_id)
        assert (shown.kind, shown.receiver_url, shown.types) == ("webhook", URL, ("task.complete",))
        assert (shown.description, shown.state, shown.delivered) == ("Tells the shop.", "waiting", 0)
        assert [one.webhook_id for one in (await callers.call(list_webhooks, WebhookQuery())).items] == [
            made.webhook_id
        ]
        assert (await callers.call(list_webhooks, WebhookQuery(kind="push"))).items == ()
        with pytest.raises(Refused) as failed:
            await callers.call(resume_webhook, made.webhook_id)
        assert (failed.value.status, failed.value.code) == (409, "not_parked")
        assert (await callers.call(remove_webhook, made.webhook_id)).status == "removed"
        for use in (get_webhook, remove_webhook, resume_webhook):
            with pytest.raises(Refused) as failed:
                await callers.call(use, made.webhook_id)
            assert (failed.value.status, failed.value.code) == (404, "webhook_not_found")

    with_callers(tmp_path, test)


def test_a_repeated_removal_is_answered_from_its_record(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        made = await callers.call(create_webhook, NewWebhook(receiver_url=URL))
        answers = [
            await callers.call(remove_webhook, made.webhook_id, caller=callers.caller("admin", idempotency_key="one"))
            for _ in range(2)
        ]
        assert answers[0] == answers[1]

    with_callers(tmp_path, test)


@pytest.mark.parametrize("url", ["http://127.0.0.1/hook", "https://10.0.0.1/hook", "ftp://93.184.216.34/", "nothing"])
def test_a_receiver_that_the_server_may_not_call_is_refused(tmp_path: Path, url: str) -> None:
    async def test(callers: Callers) -> None:
        head = callers.head
        with pytest.raises(Refused) as failed:
            await callers.call(create_webhook, NewWebhook(receiver_url=url))
        assert (failed.value.status, [one.pointer for one in failed.value.findings()]) == (422, ["/receiverUrl"])
        with pytest.raises(Refused):
            await callers.call(create_webhook, NewWebhook(receiver_url=URL, types=("task.unheard_of",)))
        assert callers.head == head

    with_callers(tmp_path, test)


def test_webhooks_are_changed_with_the_scope_admin_alone(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        made, producer = await callers.call(create_webhook, NewWebhook(receiver_url=URL)), callers.caller("produce")
        for use, arguments in (
            (create_webhook, [NewWebhook(receiver_url=URL)]),
            (remove_webhook, [made.webhook_id]),
            (resume_webhook, [made.webhook_id]),
        ):
            with pytest.raises(InsufficientScope):
                await callers.call(use, *arguments, caller=producer)

    with_callers(tmp_path, test)
