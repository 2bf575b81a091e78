"""Secrets are found by their shapes, named and placed but never repeated; what only looks random is left alone."""

from __future__ import annotations

import base64
import os
import random
from hashlib import sha256, sha384

import pytest

from redkey.ledger.secret_shapes import SHAPES
from redkey.ledger.secrets import find_secret, find_secrets, secret_in
from redkey.wire.canonical import canonical
from redkey.wire.ids import ulid
from tests.harness.secret_samples import ALNUM, HEX, SAMPLES, UPPER, b64, of, with_checksum

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
ALL = [(name, sample) for name, samples in SAMPLES.items() for sample in samples]


def test_every_shape_has_samples_and_there_are_at_least_fifty() -> None:
    assert set(SAMPLES) == {shape.name for shape in SHAPES}
    assert len(SHAPES) == len({shape.name for shape in SHAPES})
    assert len(SHAPES) >= 50


@pytest.mark.parametrize(("name", "sample"), ALL, ids=[f"{name}-{n}" for n, (name, _) in enumerate(ALL)])
def test_a_secret_is_found_by_its_name(name: str, sample: str) -> None:
    for before, after in (("", ""), ("use ", " please"), ("TOKEN=", ";"), ('"', '"'), ("(", ")"), ("one\n", "\ntwo")):
        assert secret_in(before + sample + after) == name


@pytest.mark.parametrize(("name", "sample"), ALL, ids=[f"{name}-{n}" for n, (name, _) in enumerate(ALL)])
def test_its_place_is_told_and_its_text_is_not(name: str, sample: str) -> None:
    value = {"title": "Deploy", "input": {"steps": ["one", {"a/b~c": f"with {sample} in it"}]}}
    found = find_secret(value)
    assert found is not None
    assert found.pattern == name
    assert found.pointer == "/input/steps/1/a~1b~0c"
    finding = found.finding("/body")
    assert (finding.code, finding.pointer) == ("secret_detected", "/body/input/steps/1/a~1b~0c")
    assert name in finding.message
    for part in (sample, sample[:12], sample[-12:]):
        assert part not in repr((found, finding))


def test_all_places_are_told_in_order() -> None:
    (one,), (two,) = SAMPLES["npm_token"], SAMPLES["google_api_key"]
    value = {"a": ["nothing", one], "b": {"c": two}, "d": f"{one} {two}"}
    assert [(secret.pattern, secret.pointer) for secret in find_secrets(value)] == [
        ("npm_token", "/a/1"),
        ("google_api_key", "/b/c"),
        ("npm_token", "/d"),
    ]


def test_the_name_of_a_field_is_looked_at_too() -> None:
    (sample,) = SAMPLES["npm_token"]
    found = find_secret({"env": {sample: "1"}})
    assert found is not None
    assert (found.pattern, found.pointer) == ("npm_token", "/env")


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "", [], {}, [[[["x"]]]], {"a": {"b": None}}])
def test_values_without_secrets_have_none(value: object) -> None:
    assert find_secret(value) is None


def test_a_value_nested_deep_is_looked_through() -> None:
    value: object = SAMPLES["npm_token"][0]
    for _ in range(50_000):
        value = [value]
    found = find_secret(value)
    assert found is not None
    assert found.pattern == "npm_token"


NEAR_MISSES = {
    "one character short": ["npm" + "_" + of(ALNUM, 35), "AK" + "IA" + of(UPPER, 15), "rubygems" + "_" + of(HEX, 47)],
    "one character long": ["npm" + "_" + of(ALNUM, 37), "AI" + "za" + of(ALNUM, 36)],
    "a wrong checksum": [with_checksum("gh" + "p_")[:-1] + "!", "gh" + "p_" + "a" * 36],
    "a placeholder": [
        "postgres:" + "//user:password@host/db",
        "postgres:" + "//user:${DB_PASSWORD}@host/db",
        "https:" + "//user:<your-token>@host",
        "https:" + "//user:****@host",
    ],
    "no password": ["https://user@host/path", "https://host:8080/a@b", "mailto:me@host.example", "at 10:30 me@host"],
    "a public key": ["-----BEGIN PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"],
    "a token that is not signed": [b64({"alg": "none"}) + "." + b64({"sub": "x"}) + ".", "eyJhbGciOi.x.y"],
    "base64 that is no token": ["eyJ" + of(ALNUM, 40) + "." + of(ALNUM, 40) + "." + of(ALNUM, 40)],
    "a part of a longer word": ["xnpm" + "_" + of(ALNUM, 36), "zAK" + "IA" + of(UPPER, 16)],
    "the prefix of a key of ours": ["rk" + "_5E6F7G8H9JKS4D5E", "rk" + "_5E6F7G8H9JKS4D5E_…", "rk_public_short"],
    "prose": [
        "Ask for the access token, then send it as Authorization: Bearer TOKEN.",
        "The task failed: ghp_ tokens are not accepted here.",
        "see docs/sk-learn/hf_hub.md and sq0 or EAAA",
        "key-value stores, secret_santa, pat.csv, sl.no, dp.pt.md",
    ],
    "hashes and ids": [
        sha256(b"x").hexdigest(),
        sha384(b"x").hexdigest(),
        base64.b64encode(sha384(b"x").digest()).decode(),
        "wire_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "task:task_01ARZ3NDEKTSV4RRFFQ69G5FAV:attempt:1",
        "redkey/0k3j4h5k6j7h8g9f/wk_01ARZ3NDEKTSV4RRFFQ69G5FAV/e1",
        "3f2b8c1e-1c2d-4e5f-8a9b-0c1d2e3f4a5b",
        "1.0.1001@1683553059.977315003",
    ],
}


@pytest.mark.parametrize("text", [text for texts in NEAR_MISSES.values() for text in texts])
def test_what_is_nearly_a_secret_is_none(text: str) -> None:
    assert secret_in(text) is None


def own_wire(draw: random.Random) -> bytes:
    """What this system writes all day: ids, hashes in every spelling, signatures, times."""

    def new_id(prefix: str) -> str:
        return prefix + ulid(draw.getrandbits(48), draw.randbytes(10))

    task = new_id("task_")
    return canonical(
        {
            "wire_id": new_id("wire_"),
            "type": "artifact.ready",
            "sender": "agent:researcher-7",
            "stream": {"id": f"task:{task}:attempt:1", "seq": draw.randrange(10_000)},
            "causation_id": new_id("wire_"),
            "payload": {
                "task_id": task,
                "claim_id": new_id("clm_"),
                "content_ref": {"sha256": draw.randbytes(32).hex(), "bytes": draw.randrange(10**6)},
                "idem": draw.randbytes(16).hex(),
                "body": draw.randbytes(8).hex(),
                "running_hash": base64.b64encode(draw.randbytes(48)).decode(),
                "root": base64.urlsafe_b64encode(draw.randbytes(32)).decode(),
                "signature": base64.b64encode(draw.randbytes(64)).decode(),
                "note": draw.randbytes(16).hex().upper(),
                "lease_expires_at": "2026-11-15T20:14:51.000000000Z",
            },
        }
    )


def test_our_own_wires_ids_and_hashes_are_never_taken_for_secrets() -> None:
    draw = random.Random(5)
    count = 1_000_000 if LONG else 20_000
    # Many in one text: looking through it is the same work, but for the calls.
    for _ in range(count // 100):
        text = b"\n".join([own_wire(draw) for _ in range(100)]).decode()
        assert secret_in(text) is None
