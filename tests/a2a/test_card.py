"""The card: its signature by the official verifier, how it is cached, and what it shows to whom."""

from __future__ import annotations

import copy
import json
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from a2a.types import AgentCard
from a2a.utils.signing import InvalidSignaturesError, NoSignatureError, create_signature_verifier
from google.protobuf.json_format import ParseDict
from jwt import PyJWK

from tests.harness.client import Client
from tests.harness.server import Server, serving

PATH = "/.well-known/agent-card.json"
EXTENDED = "/a2a/extendedAgentCard"


def get(server: Server, path: str = PATH, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.get(server.url + path, headers={"a2a-version": "1.0", **named}, timeout=60)


def verify(card: dict[str, Any]) -> None:
    """Hold a card against its signature, with the key that the signature names."""

    def key(kid: str | None, jku: str | None) -> PyJWK:
        (found,) = [one for one in httpx2.get(str(jku), timeout=60).json()["keys"] if one["kid"] == kid]
        return PyJWK(found)

    create_signature_verifier(key, ["EdDSA"])(ParseDict(card, AgentCard()))


def role(owner: Client, name: str) -> None:
    """The role is there; another test may have created it."""
    reply = owner.post("/roles", {"id": f"role_{name}", "name": name.title(), "description": "Grüßt, “höflich” ✓"})
    assert reply.status in (201, 409), reply.text


def cards(server: Server, owner: Client) -> list[dict[str, Any]]:
    role(owner, "greeter")
    extended = get(server, EXTENDED, authorization=f"Bearer {server.key}")
    return [get(server).json(), extended.json()]


@pytest.mark.parametrize("which", ["public", "extended"])
def test_the_official_verifier_accepts_the_signature(server: Server, owner: Client, which: str) -> None:
    verify(cards(server, owner)[which == "extended"])


def test_a_changed_card_is_not_verified(server: Server, owner: Client) -> None:
    card = cards(server, owner)[0]

    def changed(*path: str | int) -> dict[str, Any]:
        """The card with one character of a text replaced."""
        copied = copy.deepcopy(card)
        place: Any = copied
        for step in path[:-1]:
            place = place[step]
        text = place[path[-1]]
        place[path[-1]] = ("A" if text[0] != "A" else "B") + text[1:]
        return copied

    places: list[tuple[str | int, ...]] = [
        ("name",),
        ("version",),
        ("skills", 0, "description"),
        ("supportedInterfaces", 0, "url"),
        ("securitySchemes", "oauth", "oauth2SecurityScheme", "flows", "clientCredentials", "tokenUrl"),
        ("signatures", 0, "signature"),
    ]
    for place in places:
        with pytest.raises(InvalidSignaturesError):
            verify(changed(*place))
    with pytest.raises(InvalidSignaturesError):
        verify(card | {"capabilities": card["capabilities"] | {"pushNotifications": False}})
    with pytest.raises(NoSignatureError):
        verify({name: value for name, value in card.items() if name != "signatures"})


def test_the_card_is_cached_by_its_hash(server: Server, owner: Client) -> None:
    role(owner, "greeter")
    first = get(server)
    assert (first.status_code, first.headers["content-type"]) == (200, "application/json")
    assert "max-age=" in first.headers["cache-control"]
    assert parsedate_to_datetime(first.headers["last-modified"]).utcoffset() is not None
    etag = first.headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        same = get(server, if_none_match=known)
        assert (same.status_code, same.content) == (304, b"")
        assert (same.headers["etag"], same.headers["cache-control"]) == (etag, first.headers["cache-control"])
    other = get(server, if_none_match='"other"')
    assert (other.status_code, other.content) == (200, first.content)
    assert other.headers["last-modified"] == first.headers["last-modified"]
    since = get(server, if_modified_since=first.headers["last-modified"])
    assert (since.status_code, since.content) == (304, b"")
    assert get(server, if_modified_since="Mon, 01 Jan 2001 00:00:00 GMT").status_code == 200
    assert get(server, if_modified_since="yesterday").status_code == 200
    # A hash that is not known decides, whatever the time says.
    both = get(server, if_none_match='"other"', if_modified_since=first.headers["last-modified"])
    assert both.status_code == 200


def test_the_public_card_shows_the_chosen_roles_and_no_other(server: Server, owner: Client) -> None:
    role(owner, "auditor")
    public, extended = cards(server, owner)
    assert [one["id"] for one in public["skills"]] == ["greeter"]
    assert {"greeter", "auditor"} <= {one["id"] for one in extended["skills"]}


def test_the_extended_card_is_for_those_who_show_a_key(server: Server, owner: Client) -> None:
    other = str(owner.post("/workspaces", {"name": "Card readers"}).json["apiKey"])
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}
    for header in ({}, {"authorization": "Bearer rk_none_0"}):
        assert get(server, EXTENDED, **header).status_code == 401
        headers = {"a2a-version": "1.0", "content-type": "application/json", **header}
        reply = httpx2.post(f"{server.url}/a2a", content=json.dumps(rpc), headers=headers, timeout=60)
        assert (reply.status_code, "result" in reply.json()) == (401, False)
    role(owner, "auditor")
    shown = get(server, EXTENDED, authorization=f"Bearer {other}").json()
    assert "auditor" not in {one["id"] for one in shown["skills"]}


def test_the_card_changes_with_its_roles(tmp_path: Path) -> None:
    """Hash and time follow each role that the card gets, also within one second."""
    names = ("one", "two", "three")
    with serving(tmp_path, config=f"[a2a]\npublic_roles = {list(names)}\n") as server, server.client() as owner:
        seen = [get(server)]
        for number, name in enumerate(names, 1):
            role(owner, name)
            last = seen[-1].headers
            for known in ({"if_none_match": last["etag"]}, {"if_modified_since": last["last-modified"]}):
                fresh = get(server, **known)
                assert fresh.status_code == 200, known
                assert len(fresh.json()["skills"]) == number
            seen.append(fresh)
            verify(fresh.json())
    assert len({one.headers["etag"] for one in seen}) == len(seen)
    times = [parsedate_to_datetime(one.headers["last-modified"]) for one in seen]
    assert times == sorted(set(times))
