"""The second verifier agrees with the first: on whole receipts, on the first version's, and on every tampered one."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from redkey.ledger.mirror import parse_row
from redkey.ledger.receipt import _internal, build_receipt
from redkey.ledger.trust import TrustedKey, parse_trusted_keys
from redkey.ledger.verify import Policy, Verdict, verify_receipt
from redkey.shapes.receipts import ReceiptEffect, SignerTerm
from redkey.wire.canonical import canonical
from tests.first_version.archive import unpacked
from tests.harness.small_log import NEXT_SIGNER, OTHER_LOG, SIGNER, WITNESSES, SmallLog, claimed
from tests.harness.whole_receipt import anchor_rows, whole_log, whole_policy, whole_receipt
from tests.ledger.test_verify import LONG, containers, edited, leaves, with_value
from tests.typescript.conftest import Compiled

KEY, NEXT_KEY, OTHER_KEY = (str(one.verifier) for one in (SIGNER, NEXT_SIGNER, OTHER_LOG))
COSIGNERS = [str(one.verifier) for one in WITNESSES]
# By name: what the caller brought, as text, in the words of both verifiers.
POLICIES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "signed": {"keys": [KEY]},
    "other": {"keys": [OTHER_KEY]},
    "both": {"keys": [KEY, NEXT_KEY]},
    "quorum": {"keys": [KEY], "witnesses": COSIGNERS, "quorum": 2},
    "all witnesses": {"keys": [KEY], "witnesses": COSIGNERS},
    "whole": {"keys": [KEY], "witnesses": COSIGNERS[:2], "mirror": anchor_rows()[1:]},
    "last row": {"keys": [KEY], "mirror": anchor_rows()[2:]},
}


def python_policy(said: dict[str, Any]) -> Policy:
    return Policy(
        keys=tuple(one for line in said.get("keys", ()) for one in parse_trusted_keys(line)),
        witnesses=tuple(one.key for line in said.get("witnesses", ()) for one in parse_trusted_keys(line)),
        quorum=said.get("quorum"),
        mirror=tuple(parse_row(row) for row in said.get("mirror", ())),
    )


def told(verdict: Verdict, policy: Policy) -> dict[str, Any]:
    """A verdict in the words of the other verifier."""
    found = {
        "passed": verdict.holds(*policy.asked),
        "levels": {name: level.holds for name, level in verdict.levels.items()},
        "codes": [finding.code for finding in verdict.findings],
    }
    shown = {"event": verdict.event, "effect": verdict.effect}
    return found | {name: msgspec.to_builtins(part) for name, part in shown.items() if part is not None}


def differences(compiled: Compiled, tmp_path: Path, cases: list[tuple[str, bytes]]) -> tuple[int, list[Any]]:
    """How many cases the verifiers refuse, and on which they do not agree."""
    asked = [{"policy": name, "receipt": b64encode(data).decode()} for name, data in cases]
    answers = compiled.asked("receipts", {"policies": POLICIES, "cases": asked}, tmp_path)
    assert len(answers) == len(cases)
    policies = {name: python_policy(said) for name, said in POLICIES.items()}
    wrong, refused = [], 0
    for (name, data), answer in zip(cases, answers, strict=True):
        expected = told(verify_receipt(data, policies[name]), policies[name])
        refused += not expected["passed"]
        if answer != expected:
            wrong.append({"policy": name, "python": expected, "typescript": answer, "receipt": data})
    return refused, wrong


def every_change(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every value replaced, every field removed or added, every list shortened, lengthened and turned."""
    for path, value in leaves(document):
        others: list[Any] = [None, [], {}, "x", 7, True]
        if isinstance(value, int) and not isinstance(value, bool):
            others += [value + 1, -value, value + 0.5]
        elif isinstance(value, str):
            others += [value + "x", value[:-1], value.upper(), value + " ", "", value + "\u00e9"]
        yield from (with_value(document, path, other) for other in others)
    for path, value in containers(document):
        if isinstance(value, dict):
            yield from (edited(document, path, lambda fields, name=name: fields.pop(name)) for name in value)
            yield with_value(document, (*path, "winner"), "me")
            yield with_value(document, (*path, "__proto__"), {})
        else:
            yield edited(document, path, lambda items: items.append(items[0]))
            yield edited(document, path, lambda items: items.pop())
            yield edited(document, path, lambda items: items.reverse())


def test_both_verifiers_hold_the_same_of_whole_receipts(compiled: Compiled, tmp_path: Path) -> None:
    log = whole_log()
    terms = [SignerTerm(key=KEY, added=1, retired=250), SignerTerm(key=NEXT_KEY, added=240)]
    documents = [
        whole_receipt(),
        *(SmallLog(7).receipt(sequence) for sequence in (1, 2, 7)),
        log.receipt(3, effect=ReceiptEffect(status="void", reason="stale_claim")),
        log.receipt(3, log.note(SIGNER, NEXT_SIGNER), signers=[SIGNER, NEXT_SIGNER]),
        log.receipt(3, history=terms),
        log.receipt(3, log.note(SIGNER, size=249), history=terms),
        log.receipt(3, signers=[OTHER_LOG]),
        log.receipt(3, log.note(size=299), anchor=anchor_rows()),
        whole_receipt(anchor=[]),
        build_receipt(log.records[2], log.previous(3), None, base_url="https://r.example"),
        {name: value for name, value in whole_receipt().items() if name != "offline"},
    ]
    cases = [(name, orjson.dumps(document)) for document in documents for name in POLICIES]
    refused, wrong = differences(compiled, tmp_path, cases)
    assert wrong == []
    assert 0 < refused < len(cases)


def test_both_verifiers_refuse_the_same_changes_for_the_same_reasons(
    compiled: Compiled, tmp_path: Path, record_property: Any
) -> None:
    cases = [("whole", orjson.dumps(document)) for document in every_change(whole_receipt())]
    cases += [("nothing", orjson.dumps(document)) for document in every_change(SmallLog(3).receipt(2))]
    refused, wrong = differences(compiled, tmp_path, cases)
    assert wrong[:3] == []
    assert refused > len(cases) * 0.9
    record_property("proven", f"TypeScript verifier: {len(cases):,} changed receipts judged like the Python verifier")


def test_both_verifiers_refuse_every_flipped_bit(compiled: Compiled, tmp_path: Path) -> None:
    whole = orjson.dumps(whole_receipt())
    cases = []
    for position in range(0, len(whole), 1 if LONG else 3):
        changed = bytearray(whole)
        changed[position] ^= 1 << position % 8
        cases.append(("whole", bytes(changed)))
    refused, wrong = differences(compiled, tmp_path, cases)
    assert wrong[:3] == []
    assert refused == len(cases)


def test_both_verifiers_take_the_receipts_of_the_first_version(compiled: Compiled, tmp_path: Path) -> None:
    folder = unpacked(tmp_path)
    keys = (folder / "log.pub").read_text()
    receipts = [file.read_bytes() for file in sorted((folder / "receipts").iterdir())]
    asked = {"policies": {"keys": {"keys": [keys]}}}
    cases = [{"policy": "keys", "receipt": b64encode(data).decode()} for data in receipts]
    answers = compiled.asked("receipts", {**asked, "cases": cases}, tmp_path)
    policy = Policy(keys=tuple(parse_trusted_keys(keys)))
    assert answers == [told(verify_receipt(data, policy), policy) for data in receipts]
    assert len(answers) > 40
    assert all(answer["passed"] for answer in answers)


def strange_wires() -> Iterator[bytes]:
    """Wires that no server writes, and a log of a stranger may hold."""
    wire = orjson.loads(claimed(2))
    for stream in ("task:x:attempt", "task", "task:x:attempt:zz", "task:x:attempt:7", "agent:a", "", 5, None):
        yield canonical({**wire, "stream": {**wire["stream"], "stream_id": stream}})
    for sender in ("", "agent", "agent:", "agent:a:b", "human:ada", 5, None):
        for kind in ("task.claimed", "agent.updated", "inbox.sent", "role.created", "x", 5):
            yield canonical({**wire, "sender": sender, "type": kind})
    for name in wire:
        yield canonical({key: value for key, value in wire.items() if key != name})
    for payload in ({}, {"agent_id": ""}, {"agent_id": "a", "task_id": "t"}, {"agent_id": 7}, [], "x", None):
        yield canonical({**wire, "payload": payload})
    yield canonical([wire])
    yield b"{" + b" " * 10 + b"}"


def test_both_verifiers_say_the_same_of_wires_that_no_server_writes(compiled: Compiled, tmp_path: Path) -> None:
    cases = []
    for wire in strange_wires():
        log = SmallLog(1)
        record = log.append(wire)
        shown = {"wire": wire.decode(), "internal": msgspec.to_builtins(_internal(record, log.previous(2)))}
        receipt = SmallLog(2).receipt(2)
        proof = log.proof(2).encode().decode()
        cases.append(("signed", orjson.dumps({**receipt, "offline": {**receipt["offline"], **shown, "proof": proof}})))
    refused, wrong = differences(compiled, tmp_path, cases)
    assert wrong[:3] == []
    assert refused == len(cases)


NO_RECEIPTS = [
    *(b"", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000, b"[1, 2", b'"abc', b"[1,]", b"{]", b"[01]", b"[1 2]"),
    *(b'{"a":1,"a":2}', b'{"a":1e400}', b"[NaN]", b"[-Infinity]", b"[9007199254740993]", b"[1.0, -0, 1e3]"),
    *(b'["\\ud800"]', b'["\\u0000"]', b"\xef\xbb\xbf{}", b'["\x00"]', b'["\x01"]', b'["\\x"]', b"[tru]", b"[.5]"),
    b"[" * 70 + b"]" * 70,
    b"c2sp.org/tlog-proof@v1\n",
]


def test_both_verifiers_refuse_what_is_no_receipt(compiled: Compiled, tmp_path: Path) -> None:
    refused, wrong = differences(compiled, tmp_path, [("signed", data) for data in NO_RECEIPTS])
    assert wrong == []
    assert refused == len(NO_RECEIPTS)


def test_the_policies_of_both_verifiers_are_the_same() -> None:
    assert python_policy(POLICIES["whole"]) == whole_policy()
    assert python_policy(POLICIES["signed"]).keys == (TrustedKey(SIGNER.verifier),)
    assert json.loads(json.dumps(POLICIES)) == POLICIES
