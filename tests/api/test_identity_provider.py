"""Logins through an identity provider: a real server, a provider on the loopback interface, a scripted browser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from redkey.commands.decision import Refused
from redkey.config import Oidc
from redkey.services.identity_provider import IdentityProvider
from tests.harness.identity_provider import CLIENT_ID, Provider, provider
from tests.harness.person import Flow, answer_of, hidden_fields
from tests.harness.server import Server, serving

pytestmark = pytest.mark.xdist_group("identity_provider")


class World:
    """A server with a provider, and an invited person."""

    def __init__(self, server: Server, idp: Provider) -> None:
        self.server, self.idp = server, idp
        self._number = 0

    def invite(self) -> dict[str, Any]:
        """Invite a person with an account at the provider."""
        self._number += 1
        email = f"person{self._number}@example.com"
        self.idp.said = {"email": email, "sub": f"subject {self._number}"}
        with self.server.client() as admin:
            reply = admin.post(f"/workspaces/{self.server.workspace_id}/people", {"email": email})
        assert reply.status == 201, reply.text
        return {"email": email, **reply.json}

    def come_back(self, flow: Flow, **changed: str) -> httpx2.Response:
        """Log in at the provider and return the page that the person then sees."""
        sent = flow.send(flow.page(), action="provider")
        assert sent.status_code == 303, sent.text
        said = {**self.idp.consent(sent.headers["location"]), **changed}
        return flow.http.get(f"{self.server.url}/oauth/callback?{urlencode(said)}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("provider")
    (folder / "secret").write_text("the client's secret\n")
    with provider() as idp:
        config = (
            f'[oidc]\nissuer = "{idp.issuer}"\nclient_id = "{CLIENT_ID}"\nname = "Example ID"\n'
            f'client_secret_file = "{folder / "secret"}"\n'
        )
        with serving(folder, config=config) as server:
            yield World(server, idp)


def test_an_invited_person_logs_in_by_the_provider(world: World) -> None:
    person, flow = world.invite(), Flow(world.server.url)
    assert "Log in with Example ID" in flow.page().text
    page = world.come_back(flow)
    assert page.status_code == 200, page.text
    assert person["email"] in page.text
    assert world.idp.forms[-1]["client_secret"] == "the client's secret"
    cookie = flow.http.cookies["redkey_login"]
    assert world.idp.forms[-1]["code_verifier"] == cookie
    tokens = flow.exchange(answer_of(flow.send(page, action="allow"))["code"]).json()
    with world.server.client(tokens["access_token"]) as caller:
        made = caller.post("/queues", {"name": person["email"].partition("@")[0]})
        event = caller.get(f"/events/{made.json['eventId']}").json
    assert event["actor"]["id"] == person["personId"]


def test_the_cookie_is_for_this_login_alone(world: World) -> None:
    world.invite()
    flow = Flow(world.server.url)
    sent = flow.send(flow.page(), action="provider")
    cookie = sent.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/oauth", "Max-Age=600"))
    said = world.idp.consent(sent.headers["location"])
    stranger = Flow(world.server.url)
    other = stranger.http.get(f"{world.server.url}/oauth/callback?{urlencode(said)}")
    assert (other.status_code, "another browser" in other.text) == (400, True)
    page = flow.http.get(f"{world.server.url}/oauth/callback?{urlencode(said)}")
    stolen = stranger.http.post(f"{world.server.url}/oauth/authorize", {**hidden_fields(page.text), "action": "allow"})
    assert (stolen.status_code, "another browser" in stolen.text) == (400, True)


def test_a_person_may_refuse_after_the_provider(world: World) -> None:
    world.invite()
    flow = Flow(world.server.url)
    assert answer_of(flow.send(world.come_back(flow), action="deny"))["error"] == "access_denied"


@pytest.mark.parametrize(
    "said",
    [
        {"email_verified": False},
        {"email_verified": "true"},
        {"aud": "another client"},
        {"iss": "http://127.0.0.1:1"},
        {"nonce": "another nonce"},
        {"exp": 1000000000},
        {"azp": "another client"},
        {"email": None},
    ],
)
def test_an_id_token_that_is_not_for_this_login_is_refused(world: World, said: dict[str, Any]) -> None:
    world.invite()
    world.idp.said |= said
    refused = world.come_back(Flow(world.server.url))
    assert refused.status_code == 502
    assert "cannot log you in" in refused.text


def test_an_id_token_of_another_key_is_refused(world: World) -> None:
    world.invite()
    own = world.idp.key
    try:
        # The same key id as the published one, which the server has read before.
        world.come_back(Flow(world.server.url))
        world.idp.key = generate_private_key(public_exponent=65537, key_size=2048)
        assert world.come_back(Flow(world.server.url)).status_code == 502
    finally:
        world.idp.key = own


def test_who_is_not_invited_does_not_get_in(world: World) -> None:
    world.idp.said = {"email": "stranger@example.com"}
    refused = world.come_back(Flow(world.server.url))
    assert (refused.status_code, "not invited" in refused.text) == (403, True)


def test_an_address_that_changes_hands_at_the_provider_does_not_open_the_account(world: World) -> None:
    world.invite()
    flow = Flow(world.server.url)
    assert "code" in answer_of(flow.send(world.come_back(flow), action="allow"))
    world.idp.said |= {"sub": "another person with this address"}
    assert world.come_back(Flow(world.server.url)).status_code == 403


@pytest.mark.parametrize("changed", [{"state": "forged.00"}, {"state": ""}, {"error": "access_denied"}])
def test_what_did_not_begin_here_ends_here(world: World, changed: dict[str, str]) -> None:
    world.invite()
    assert world.come_back(Flow(world.server.url), **changed).status_code in (400, 403)


def test_a_provider_that_is_away_or_not_https_is_refused() -> None:
    away = IdentityProvider(Oidc(issuer="http://127.0.0.1:9", client_id="x"), "http://127.0.0.1/oauth/callback")
    with pytest.raises(Refused, match="does not answer"):
        asyncio.run(away.login_url("state", "nonce", "challenge"))
    plain = IdentityProvider(Oidc(issuer="http://provider.example", client_id="x"), "http://127.0.0.1/oauth/callback")
    with pytest.raises(Refused, match="not https"):
        asyncio.run(plain.login_url("state", "nonce", "challenge"))
