"""Usage, credits and tokens by their use cases."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from redkey.commands.decision import Refused
from redkey.services.use_cases.oauth import key_set, server_metadata, token
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.usage import get_credits, get_usage, grant_credits, set_prices
from redkey.shapes.oauth import TokenRequest
from redkey.shapes.queues import NewQueue
from redkey.shapes.usage import By, CreditsGrant, NewPrices, UsageQuery
from tests.harness.callers import Callers, with_callers


@pytest.mark.parametrize("by", ["day", "type", "agent"])
def test_groups_add_up_to_the_total_and_name_what_was_asked_for(tmp_path: Path, by: By) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="One"))
        report = await callers.call(get_usage, UsageQuery(by=by))
        assert report.by == by
        assert report.total.events > 0
        field = "agent_id" if by == "agent" else by
        assert all(getattr(one, field) for one in report.items)
        if by == "agent":
            return
        assert sum(one.events for one in report.items) == report.total.events
        assert sum(one.bytes for one in report.items) == report.total.bytes
        # Every figure is sent, those that are nothing too.
        assert b'"misses":0' in msgspec.json.encode(report)

    with_callers(tmp_path, test)


def test_days_bound_what_is_counted(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        none = await callers.call(get_usage, UsageQuery(from_="2999-01-01"))
        assert (none.total.events, none.items) == (0, ())
        with pytest.raises(Refused) as failed:
            await callers.call(get_usage, UsageQuery(from_="yesterday", to="2026-13-01"))
        assert [one.pointer for one in failed.value.findings()] == ["/from", "/to"]

    with_callers(tmp_path, test)


def test_credits_have_a_balance_from_the_first_grant_on(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        assert (await callers.call(get_credits)).balance is None
        operator = callers.caller("operator", "read")
        granted = await callers.call(grant_credits, CreditsGrant(amount=10), caller=operator)
        assert (granted.status, granted.workspace_id, granted.amount) == ("granted", callers.workspace_id, 10)
        found = await callers.call(get_credits)
        assert (found.granted, found.balance) == (10, 10 - found.used)

    with_callers(tmp_path, test)


def test_prices_get_a_version_and_name_event_types(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        operator = callers.caller("operator")
        for version in (1, 2):
            priced = await callers.call(set_prices, NewPrices(prices={"task.created": version}), caller=operator)
            assert (priced.status, priced.version, priced.workspace_id) == ("priced", version, callers.workspace_id)
        assert (await callers.call(get_credits)).prices == {"task.created": 2}
        with pytest.raises(Refused) as failed:
            await callers.call(set_prices, NewPrices(prices={"task.dreamt": 1}), caller=operator)
        assert failed.value.findings()[0].pointer == "/prices/task.dreamt"
        elsewhere = CreditsGrant(amount=1, workspace_id="wk_nowhere")
        with pytest.raises(Refused) as failed:
            await callers.call(grant_credits, elsewhere, caller=operator)
        assert failed.value.code == "workspace_not_found"

    with_callers(tmp_path, test)


def test_a_token_has_the_scopes_that_were_asked_for_and_no_more(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        asked = TokenRequest("client_credentials", "produce read")
        made = await callers.call(token, asked, caller=callers.caller("admin"))
        assert made.scope == "produce read"
        assert made.access_token not in repr(made)
        holder = callers.app.tokens.holder(made.access_token)
        assert holder is not None
        assert holder.actor.scopes == {"produce", "read"}
        whole = await callers.call(token, TokenRequest("client_credentials"), caller=callers.caller("admin"))
        assert whole.scope == "admin"
        with pytest.raises(Refused) as failed:
            await callers.call(token, asked, caller=callers.caller("read"))
        assert (failed.value.status, failed.value.code) == (400, "invalid_scope")

    with_callers(tmp_path, test)


def test_clients_find_where_tokens_are_given_and_checked(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        found = await callers.call(server_metadata)
        assert found.token_endpoint == "http://127.0.0.1/oauth/token"
        assert "admin" in found.scopes_supported
        assert [key.alg for key in (await callers.call(key_set)).keys] == ["EdDSA"]

    with_callers(tmp_path, test)
