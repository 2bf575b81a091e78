"""No key and no token is ever shown: not by repr, not in logs, not in errors."""

from __future__ import annotations

import asyncio
import logging
import pickle

import pytest

from redkey.client import AsyncRedKey, RedKey, Unauthorized, Unreachable
from redkey.client.flow import call
from redkey.client.policy import Policy
from redkey.client.resources.server import OAuth
from redkey.config import read_credentials
from tests.client.conftest import Place

SECRET = "rk_0123456789abcdef_verysecretverysecret"


def test_clients_show_where_they_call_and_not_with_which_key(place: Place) -> None:
    with RedKey(place.url, SECRET) as rk:
        assert repr(rk) == f"RedKey('{place.url}')"
        shown = repr([rk, rk.settings, rk.tasks, rk.tasks.create, vars(rk)])
        assert "verysecret" not in shown
    other = AsyncRedKey(place.unix, SECRET)
    assert repr(other) == f"AsyncRedKey('{place.unix}')"
    asyncio.run(other.close())


def test_replies_that_carry_a_secret_do_not_show_it(rk: RedKey, place: Place) -> None:
    key = rk.keys.create(place.workspace_id, scopes=["read"])
    agent = rk.agents.register(card={"name": "A", "version": "1"}, issue_key=True)
    public_id, _, secret = key.api_key.rpartition("_")
    token = rk.oauth.token(public_id, secret)
    for reply, hidden in ((key, key.api_key), (agent, agent.api_key), (token, token.access_token)):
        assert hidden
        assert hidden not in repr(reply)
        assert hidden not in f"{reply}"
        assert "***" in repr(reply)
    credentials = read_credentials(place.server.data)
    assert credentials is not None
    assert credentials.api_key not in repr(credentials)


def test_logs_and_errors_never_hold_a_key(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with RedKey(place.url, SECRET) as rk, pytest.raises(Unauthorized) as refused:
        rk.queues.list().page()
    with RedKey("http://127.0.0.1:1", SECRET, max_retries=1) as rk, pytest.raises(Unreachable) as failed:
        rk.queues.create("a")
    with RedKey(place.url, place.key) as rk:
        rk.queues.create("a")
        next(rk.events.follow(after=0))
    told = caplog.text + repr(refused.value) + str(vars(refused.value)) + repr(failed.value) + str(vars(failed.value))
    assert "verysecret" not in told
    assert place.key.rpartition("_")[2] not in told


def test_what_a_flow_wants_sent_does_not_hold_the_key() -> None:
    """The connection adds it last, so that no value that is passed around or pickled has it."""
    sending = next(call(OAuth.metadata.build(None), Policy()))
    assert "authorization" not in sending.headers
    assert b"verysecret" not in pickle.dumps(sending)


def test_public_calls_go_without_the_key(place: Place) -> None:
    with RedKey(place.url, SECRET) as rk:
        assert rk.server.health().status == "ok"
        assert rk.oauth.metadata().issuer == place.url
