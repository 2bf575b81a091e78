"""Failed logins: limited by address and client, counted, and logged without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx2
import pytest

from redkey.api.logins import Logins
from redkey.api.metrics import Metrics
from redkey.config import Rate
from redkey.http.problems import Declined
from tests.harness.acts import gauge
from tests.harness.client import Client
from tests.harness.server import Server

LIMITS = "[logins]\nper_second = 0.01\nburst = 3\n"
WRONG = "rk_0123456789ABCDEF_" + "S3cr3t" * 6


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def fail(logins: Logins, address: str, client_id: str = "") -> int:
    """Return how long a failed login must wait; 0 if it was only refused."""
    try:
        logins.failed(address, client_id)
    except Declined as limited:
        return int(limited.headers["retry-after"])
    return 0


def test_an_address_may_fail_so_often_and_then_at_a_rate() -> None:
    clock = Clock()
    logins = Logins(Rate(per_second=0.5, burst=2), clock, Metrics())
    assert [fail(logins, "192.0.2.1") for _ in range(4)] == [0, 0, 2, 2]
    assert fail(logins, "192.0.2.2") == 0
    clock.now += 2
    assert [fail(logins, "192.0.2.1") for _ in range(2)] == [0, 2]


def test_a_client_is_guessed_at_no_faster_from_many_addresses() -> None:
    logins = Logins(Rate(per_second=0.5, burst=2), Clock(), Metrics())
    told = [fail(logins, f"192.0.2.{number}", "0123456789ABCDEF") for number in range(4)]
    assert told == [0, 0, 2, 2]
    # What has not the shape of a client is nobody.
    assert [fail(logins, f"198.51.100.{number}", "no client: " + "x" * 99) for number in range(4)] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("unix", "unix", True),
    ],
)
def test_all_addresses_of_one_caller_count_as_one_source(one: str, other: str, same: bool) -> None:
    logins = Logins(Rate(per_second=0.5, burst=1), Clock(), Metrics())
    assert fail(logins, one) == 0
    assert (fail(logins, other) > 0) == same


def test_without_a_rate_failures_are_only_counted() -> None:
    logins = Logins(Rate(), Clock(), Metrics())
    assert [fail(logins, "192.0.2.1") for _ in range(200)] == [0] * 200


def test_wrong_keys_are_limited_and_right_ones_are_accepted(start: Callable[..., Server]) -> None:
    server = start(config=LIMITS)
    with server.client(WRONG) as stranger, server.client() as client:
        replies = [stranger.get("/queues") for _ in range(5)]
        assert [reply.status for reply in replies] == [401, 401, 401, 429, 429]
        assert replies[-1].json["code"] == "logins_limited"
        assert 1 <= int(replies[-1].headers["retry-after"]) <= 100
        # A valid key is accepted, from the same address too, and for the same client.
        assert client.get("/queues").status == 200
        truncated = server.key[:-1]
        assert _status(server, f"Bearer {truncated}") == 429
        assert client.get("/queues").status == 200
    assert gauge(server.url, "redkey_logins_refused_total") == 3
    assert gauge(server.url, "redkey_logins_limited_total") == 3
    lines = [json.loads(line) for line in server.logs().splitlines() if '"a login failed"' in line]
    assert [(line["address"], line["client_id"]) for line in lines] == [("127.0.0.1", "0123456789ABCDEF")] * 3
    for secret in (WRONG.rpartition("_")[2], server.key.rpartition("_")[2]):
        assert secret not in server.logs().replace(server.key, "")


def test_wrong_client_secrets_are_bounded_too(start: Callable[..., Server]) -> None:
    server = start(config=LIMITS)
    _, public, secret = server.key.split("_")

    def ask(shown: str) -> httpx2.Response:
        form = {"grant_type": "client_credentials", "client_id": public, "client_secret": shown}
        return httpx2.post(f"{server.url}/oauth/token", data=form, timeout=60)

    replies = [ask("wrong" * 5) for _ in range(4)]
    assert [reply.status_code for reply in replies] == [401, 401, 401, 429]
    assert replies[0].json()["error"] == "invalid_client"
    assert replies[-1].json()["code"] == "logins_limited"
    assert "retry-after" in replies[-1].headers
    assert ask(secret).status_code == 200
    assert '"client_id":"' + public in server.logs().replace(" ", "")


def test_a_token_that_has_run_out_or_is_unknown_by_its_key_is_no_failed_login(start: Callable[..., Server]) -> None:
    server = start(config=LIMITS)
    with server.client() as client:
        made = client.post(f"/workspaces/{server.workspace_id}/api-keys", {"scopes": ["read"]}).json
        _, public, secret = made["apiKey"].split("_")
        form = {"grant_type": "client_credentials", "client_id": public, "client_secret": secret}
        token = httpx2.post(f"{server.url}/oauth/token", data=form, timeout=60).json()["access_token"]
        assert client.delete(f"/workspaces/{server.workspace_id}/api-keys/{made['keyId']}").status == 200
    with Client(server.url, token) as late:
        assert [late.get("/queues").status for _ in range(6)] == [401] * 6
    forged = token[:-4] + ("AAAA" if not token.endswith("AAAA") else "BBBB")
    assert [_status(server, f"Bearer {forged}") for _ in range(4)] == [401, 401, 401, 429]


def _status(server: Server, authorization: str) -> int:
    return httpx2.get(f"{server.url}/queues", headers={"authorization": authorization}, timeout=60).status_code
