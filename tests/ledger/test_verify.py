"""A receipt proves what it says and nothing else: whatever is changed in it is refused, with a reason."""

from __future__ import annotations

import copy
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redkey.errors import ProofRefused
from redkey.ledger.checkpoint import origin_of, sign_checkpoint
from redkey.ledger.cosignature import cosign
from redkey.ledger.note import COSIGNATURE, Note
from redkey.ledger.receipt import build_receipt, read_extra
from redkey.ledger.record import hedera_time
from redkey.ledger.trust import TrustedKey
from redkey.ledger.verify import LEVELS, Policy, verify_receipt
from redkey.shapes.receipts import ReceiptEffect, SignerTerm
from tests.harness.small_log import (
    LOG_ID,
    NEXT_SIGNER,
    ORIGIN,
    OTHER_LOG,
    SIGNER,
    WITNESSES,
    SmallLog,
    claimed,
    seeded,
)
from tests.harness.whole_receipt import (
    BODY,
    SEQUENCE,
    anchor_rows,
    judged,
    refused,
    whole_log,
    whole_note,
    whole_policy,
    whole_receipt,
)

LONG = bool(os.environ.get("REDKEY_TEST_LONG"))
Path = tuple[str | int, ...]
SIGNED = Policy(keys=(TrustedKey(SIGNER.verifier),))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def containers(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict | list):
        yield path, value
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from containers(item, (*path, name))


def at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def with_value(document: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(document)
    at(changed, path[:-1])[path[-1]] = value
    return changed


def offline(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**document, "offline": {**document["offline"], **fields}}


# What holds, and what does not when the caller brings less.


def test_a_whole_receipt_holds_at_every_level() -> None:
    verdict = judged(whole_receipt())
    assert verdict.holds(*LEVELS)
    assert verdict.findings == ()
    assert verdict.event is not None
    assert verdict.event.sequence == SEQUENCE
    assert verdict.levels["integrity"].why == f"record {SEQUENCE} is in the tree of 300 records of {ORIGIN}"
    assert "witness0.example/w at 2026-05-07T18:16:40Z" in verdict.levels["witnessed"].why
    assert "on topic 0.0.777001 as message 2" in verdict.levels["anchored"].why


def test_without_keys_only_integrity_holds_and_the_signers_are_named_as_unvouched() -> None:
    verdict = judged(whole_receipt(), Policy())
    assert [name for name in LEVELS if verdict.levels[name].holds] == ["integrity"]
    key = SIGNER.verifier.named(ORIGIN)
    assert f"{ORIGIN}+{key.key_id.hex()} signed, and nobody vouched" in verdict.levels["signed"].why
    assert "witness0.example/w+" in verdict.levels["witnessed"].why
    assert "no mirror answer" in verdict.levels["anchored"].why


def test_a_receipt_with_the_least_in_it_holds_as_far_as_it_goes() -> None:
    for sequence in (1, 2, 7):
        document = SmallLog(7).receipt(sequence)
        assert judged(document, SIGNED).holds("integrity", "signed")
        assert document["levels"] == {"integrity": True, "signed": True, "witnessed": False, "anchored": False}


def test_a_key_for_one_origin_or_for_the_whole_log_will_do() -> None:
    for name in (SIGNER.verifier.name, ORIGIN):
        policy = Policy(keys=(TrustedKey(SIGNER.verifier.named(name)),))
        assert judged(whole_receipt(), policy).holds("integrity", "signed")


def test_one_fitting_key_among_others_will_do() -> None:
    keys = (TrustedKey(OTHER_LOG.verifier), TrustedKey(NEXT_SIGNER.verifier), TrustedKey(SIGNER.verifier))
    assert judged(whole_receipt(), Policy(keys=keys)).holds("signed")


def test_while_keys_are_rotated_either_key_will_do() -> None:
    note = whole_log().note(SIGNER, NEXT_SIGNER)
    document = whole_log().receipt(3, note, signers=[SIGNER, NEXT_SIGNER])
    for signer in (SIGNER, NEXT_SIGNER):
        assert judged(document, Policy(keys=(TrustedKey(signer.verifier),))).holds("integrity", "signed")


def test_a_void_effect_is_told_with_its_reason() -> None:
    verdict = judged(whole_log().receipt(3, effect=ReceiptEffect(status="void", reason="stale_claim")), SIGNED)
    assert verdict.holds("signed")
    assert verdict.effect == ReceiptEffect(status="void", reason="stale_claim")


def test_a_pending_receipt_and_one_without_its_offline_part_prove_nothing_and_say_what_to_do() -> None:
    log = whole_log()
    pending = build_receipt(log.records[2], log.previous(3), None, base_url="https://r.example")
    assert pending["verification"]["status"] == "pending"
    assert not any(pending["levels"].values())
    assert "fetch the receipt again" in refused(pending, ["offline_missing"], SIGNED).levels["integrity"].why
    plain = {name: value for name, value in whole_receipt().items() if name != "offline"}
    assert "?format=proof" in refused(plain, ["offline_missing"], SIGNED).levels["integrity"].why


# Every field, every container, every bit.


def test_every_changed_value_is_refused() -> None:
    document = whole_receipt()
    for path, value in leaves(document):
        others: list[Any] = [None, [], {}, "x", 7]
        if isinstance(value, bool):
            others.append(not value)
        elif isinstance(value, int):
            others.extend([value + 1, value - 1, -value, value + 0.5])
        elif isinstance(value, str):
            others.extend([value + "x", value[:-1], value.upper(), value + " ", ""])
        for other in others:
            if other != value or type(other) is not type(value):
                if other is None and path[-1] == "chunk_info":
                    continue
                refused(with_value(document, path, other))


def test_every_missing_or_added_field_is_refused() -> None:
    document = whole_receipt()
    for path, value in containers(document):
        if isinstance(value, dict):
            for name in value:
                refused_without(document, path, name)
            refused(with_value(document, (*path, "winner"), "me"))
        else:
            refused(edited(document, path, lambda items: items.append(copy.deepcopy(items[0]))))
            refused(edited(document, path, lambda items: items.pop()))
            if len(value) > 1:
                refused(edited(document, path, lambda items: items.reverse()))


def test_unknown_fields_and_words_are_refused_even_with_no_key() -> None:
    document = whole_receipt()
    for path in ((), ("actor",), ("effect",), ("offline",), ("offline", "internal"), ("offline", "signers", 1)):
        added = edited(document, path, lambda part: part.update(newer="x"))
        verdict = refused(added, ["receipt_malformed"], Policy())
        assert [one.pointer for one in verdict.findings] == ["".join(f"/{part}" for part in path)]
    for path in (("verification", "status"), ("effect", "status")):
        verdict = refused(with_value(document, path, "newer"), ["receipt_malformed"], Policy())
        assert [one.pointer for one in verdict.findings] == ["/" + "/".join(path)]


def test_a_proof_whose_record_has_unknown_fields_is_refused() -> None:
    internal = whole_receipt()["offline"]["internal"]
    assert read_extra(orjson.dumps({"wire": "w", "internal": internal}))[0] == "w"
    with pytest.raises(ProofRefused) as caught:
        read_extra(orjson.dumps({"wire": "w", "internal": {**internal, "newer": "x"}}))
    assert caught.value.code == "record_malformed"


def refused_without(document: Any, path: Path, name: str) -> None:
    refused(edited(document, path, lambda fields: fields.pop(name)))


def edited(document: Any, path: Path, edit: Callable[[Any], object]) -> Any:
    changed = copy.deepcopy(document)
    edit(at(changed, path))
    return changed


def test_every_flipped_bit_of_the_file_is_refused() -> None:
    policy, data = whole_policy(), orjson.dumps(whole_receipt())
    assert verify_receipt(data, policy).holds(*LEVELS)
    for position in range(len(data)):
        for bit in range(8) if LONG else (position % 8,):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            verdict = verify_receipt(bytes(changed), policy)
            assert not verdict.holds(*LEVELS), (position, bit, data[max(0, position - 40) : position + 10])
            assert verdict.findings


def binary_parts(document: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Where base64 stands in a receipt: (path to the string, the base64 in it)."""
    for path in (("previousRunningHash",), ("runningHash",)):
        yield ("offline", "internal", *path), at(document, ("offline", "internal", *path))
    for word in document["offline"]["proof"].split():
        if len(word) > 40 and "/wk_" not in word:
            yield ("offline", "proof"), word
    for field in ("content", "attestation"):
        for index, text in enumerate(document["offline"][field]):
            yield ("offline", field, index), text
    for index, row in enumerate(document["offline"]["anchor"]):
        for field in ("message", "running_hash"):
            yield ("offline", "anchor", index, field), row[field]


def test_every_flipped_bit_of_the_binary_parts_is_refused() -> None:
    document = whole_receipt()
    parts = list(binary_parts(document))
    assert len(parts) > 15
    for path, text in parts:
        data = b64decode(text)
        for position in range(len(data)):
            for bit in range(8) if LONG else (position % 8,):
                changed = bytearray(data)
                changed[position] ^= 1 << bit
                value = at(document, path).replace(text, b64encode(changed).decode())
                refused(with_value(document, path, value))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_change_makes_the_verifier_raise(data: st.DataObject) -> None:
    document = whole_receipt()
    places = [path for path, _ in (*leaves(document), *containers(document)) if path]
    json = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    )
    path = data.draw(st.sampled_from(places))
    before, value = at(document, path), data.draw(json)
    if value != before or type(value) is not type(before):
        judged(with_value(document, path, value))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"a":' * 1000,
        b'{"eventId":"a","eventId":"b"}',
        b"c2sp.org/tlog-proof@v1\n",
    ],
)
def test_what_is_no_receipt_is_refused_with_a_code(data: bytes) -> None:
    verdict = verify_receipt(data, SIGNED)
    assert not any(level.holds for level in verdict.levels.values())
    assert verdict.findings[0].code


# Attacks by people who know what they do.


def resigned(document: dict[str, Any], note: Note, **fields: Any) -> dict[str, Any]:
    """The document with another checkpoint under the same proof."""
    head = document["offline"]["proof"].partition("\n\n")[0]
    return offline(document, proof=f"{head}\n\n{note.encode().decode()}", **fields)


def test_fields_that_lie_about_the_wire_are_refused_even_with_no_key() -> None:
    document = whole_receipt()
    lies = {
        "eventId": "evt_01J00000000000000000000999",
        "type": "task.complete",
        "timestamp": "2026-05-07T18:15:00.000000000Z",
        "actor": {"type": "agent", "id": "agt_somebody"},
        "subject": {"type": "task", "id": "task_another"},
    }
    for name, value in lies.items():
        verdict = refused({**document, name: value}, ["field_mismatch"], Policy())
        assert verdict.findings[0].pointer == f"/{name}"
        assert verdict.event is None
    refused({**document, "sequence": SEQUENCE - 1}, [], Policy())
    refused({**document, "levels": {**document["levels"], "witnessed": False}}, ["levels_mismatch"], Policy())
    refused(
        {**document, "verification": {**document["verification"], "status": "pending"}}, ["field_mismatch"], Policy()
    )
    elsewhere = {**document["verification"], "receiptUrl": "https://redkey.example/receipts/evt_other"}
    refused({**document, "verification": elsewhere}, ["field_mismatch"], Policy())


def test_an_effect_that_was_changed_is_refused() -> None:
    log = whole_log()
    void = log.receipt(3, effect=ReceiptEffect(status="void", reason="stale_claim"))
    refused({**void, "effect": {"status": "applied"}}, ["attestation_invalid"], SIGNED)
    stripped = offline({**void, "effect": {"status": "applied"}}, attestation=[])
    verdict = refused(stripped, ["attestation_missing"], SIGNED)
    assert verdict.holds("integrity")
    for forger in (NEXT_SIGNER, OTHER_LOG):
        forged = log.receipt(3, effect=ReceiptEffect(status="applied"), signers=[forger])
        refused(forged, ["attestation_missing"], SIGNED)
    refused({**void, "effect": {"status": "void"}}, ["field_mismatch"], Policy())


def test_the_attestation_of_another_receipt_is_refused() -> None:
    one, other = whole_log().receipt(3), whole_log().receipt(4)
    refused(offline(one, attestation=other["offline"]["attestation"]), ["attestation_invalid"], SIGNED)


def test_swapped_wires_are_refused() -> None:
    one, other = whole_log().receipt(3), whole_log().receipt(4)
    refused(offline(one, wire=other["offline"]["wire"]), ["running_hash_wrong"], SIGNED)
    moved = {**one, **{name: other[name] for name in other if name not in ("sequence", "offline")}}
    refused(offline(moved, wire=other["offline"]["wire"], internal=other["offline"]["internal"]), [], SIGNED)


def test_a_wire_that_is_not_canonical_is_refused() -> None:
    document = whole_receipt()
    spaced = orjson.dumps(orjson.loads(document["offline"]["wire"]), option=orjson.OPT_INDENT_2).decode()
    refused(offline(document, wire=spaced), ["wire_not_canonical"])
    refused(offline(document, wire=document["offline"]["wire"] + " "), ["wire_not_canonical"])


def test_a_record_of_a_fork_is_not_in_the_checkpoint_that_others_saw() -> None:
    fork = SmallLog(300, seed="fork")
    mixed = resigned(fork.receipt(SEQUENCE), whole_note())
    refused(mixed, ["inclusion_wrong"], SIGNED)


def test_a_fork_that_the_log_itself_signed_is_refused_by_its_witnesses() -> None:
    fork = SmallLog(300, seed="fork")
    policy = Policy(keys=SIGNED.keys, witnesses=(WITNESSES[0].verifier,))
    document = fork.receipt(SEQUENCE)
    assert judged(document, policy).holds("integrity", "signed")
    refused(document, ["witness_missing", "witness_quorum"], policy)
    lines = whole_note().signatures[1:]
    note = Note(fork.note().text, (*fork.note().signatures, *lines))
    refused(fork.receipt(SEQUENCE, note), ["cosignature_invalid"], policy)


def test_a_checkpoint_signed_with_a_retired_key_is_refused_when_the_receipt_tells_of_it() -> None:
    log = whole_log()
    terms = [
        SignerTerm(key=str(SIGNER.verifier), added=1, retired=250),
        SignerTerm(key=str(NEXT_SIGNER.verifier), added=240),
    ]
    document = log.receipt(3, history=terms)
    verdict = refused(document, ["signer_retired"], SIGNED)
    assert "was retired at size 250, and signed size 300" in verdict.levels["signed"].why
    assert verdict.holds("integrity")
    earlier = log.receipt(3, log.note(SIGNER, size=249), history=terms)
    assert judged(earlier, SIGNED).holds("signed")
    both = log.receipt(3, log.note(SIGNER, NEXT_SIGNER), history=terms, signers=[NEXT_SIGNER])
    assert judged(both, Policy(keys=(*SIGNED.keys, TrustedKey(NEXT_SIGNER.verifier)))).holds("signed")


def test_a_checkpoint_signed_with_a_retired_key_is_refused_when_the_key_file_tells_of_it() -> None:
    document = whole_log().receipt(3)
    for retired, holds in ((300, False), (301, True), (1, False)):
        policy = Policy(keys=(TrustedKey(SIGNER.verifier.named(ORIGIN), retired),))
        assert judged(document, policy).holds("signed") is holds


def test_another_logs_key_proves_nothing() -> None:
    verdict = refused(whole_receipt(), ["key_other_log"], Policy(keys=(TrustedKey(OTHER_LOG.verifier),)))
    assert verdict.holds("integrity")
    log = whole_log()
    forged = log.receipt(3, sign_note_as(log, OTHER_LOG), signers=[OTHER_LOG])
    refused(forged, ["key_did_not_sign"], SIGNED)


def sign_note_as(log: SmallLog, signer: Any) -> Note:
    return sign_checkpoint(log.checkpoint(), [signer])


def test_a_checkpoint_of_another_origin_is_refused() -> None:
    document = whole_receipt()
    other = origin_of(LOG_ID, "wk_01J0000000000000000000000X", 1)
    renamed = document["offline"]["proof"].replace(ORIGIN, other)
    refused(offline(document, proof=renamed), ["key_did_not_sign"], SIGNED)
    only_text = document["offline"]["proof"].replace(f"{ORIGIN}\n300", f"{other}\n300")
    refused(offline(document, proof=only_text), [], SIGNED)
    exact = Policy(keys=(TrustedKey(SIGNER.verifier.named(ORIGIN)),))
    elsewhere = whole_log().receipt(3, whole_log().note(origin=origin_of(LOG_ID, "wk_01J0000000000000000000000W", 2)))
    refused(elsewhere, ["key_other_log"], exact)
    assert judged(elsewhere, SIGNED).holds("signed"), "the log's key speaks for every epoch"


def test_a_checkpoint_that_is_too_small_is_refused() -> None:
    log = whole_log()
    small = log.note(SIGNER, size=SEQUENCE - 1)
    refused(resigned(whole_receipt(), small), ["record_beyond_checkpoint"])
    larger = log.note(SIGNER, size=SEQUENCE)
    refused(resigned(whole_receipt(), larger), ["inclusion_wrong"])


def test_a_record_that_the_log_put_at_another_place_than_its_sequence_says_is_refused() -> None:
    log = SmallLog(4)
    log.head = msgspec.structs.replace(log.head, sequence=8)
    moved = log.append(claimed(9))
    assert (moved.sequence, log.tree.size) == (9, 5)
    proof = log.proof(5)
    document = build_receipt(moved, log.previous(5), proof, base_url="https://r.example", signers=[SIGNER])
    verdict = refused(document, ["sequence_mismatch"], SIGNED)
    assert verdict.findings[0].message == "the proof is of record 5, the receipt of record 9"


def test_a_signature_by_another_key_under_the_same_name_is_refused() -> None:
    log = whole_log()
    impostor = seeded(SIGNER.verifier.name, 77)
    refused(log.receipt(3, sign_note_as(log, impostor), signers=[impostor]), ["key_did_not_sign"], SIGNED)
    line = sign_note_as(log, impostor).signatures[0]
    real = whole_note().signatures[0]
    dressed = Note(whole_note().text, (type(line)(real.name, real.key_id, line.data),))
    refused(log.receipt(3, dressed), ["signature_invalid"], SIGNED)


def test_a_good_and_a_wrong_signature_of_the_same_key_are_refused() -> None:
    real = whole_note().signatures[0]
    wrong = type(real)(real.name, real.key_id, bytes(64))
    for lines in ((real, wrong), (wrong, real)):
        refused(whole_log().receipt(3, Note(whole_note().text, lines)), ["signature_invalid"], SIGNED)


# Witnesses.


def witnessed_by(*lines: Any) -> dict[str, Any]:
    note = whole_log().note()
    return whole_log().receipt(3, Note(note.text, (*note.signatures, *lines)))


def policy_of(*witnesses: Any, quorum: int | None = None) -> Policy:
    return Policy(keys=SIGNED.keys, witnesses=tuple(one.verifier for one in witnesses), quorum=quorum)


def test_all_witnesses_must_have_cosigned_or_as_many_as_the_quorum_says() -> None:
    text = whole_log().note().text
    document = witnessed_by(*(cosign(one, text, 9) for one in WITNESSES[:2]))
    assert judged(document, policy_of(*WITNESSES[:2])).holds("witnessed")
    assert judged(document, policy_of(*WITNESSES, quorum=2)).holds("witnessed")
    verdict = refused(document, ["witness_missing", "witness_quorum"], policy_of(*WITNESSES))
    assert "2 of 3 witnesses cosigned, 3 are needed" in verdict.levels["witnessed"].why


def test_the_same_witness_twice_is_one_witness() -> None:
    text = whole_log().note().text
    line = cosign(WITNESSES[0], text, 9)
    for twice in ((line, line), (line, cosign(WITNESSES[0], text, 10))):
        document = witnessed_by(*twice)
        assert judged(document, policy_of(WITNESSES[0])).holds("witnessed")
        refused(document, ["witness_quorum"], policy_of(*WITNESSES[:2], quorum=2))


def test_a_forged_cosignature_is_refused_even_where_the_quorum_is_reached() -> None:
    text = whole_log().note().text
    good, other = cosign(WITNESSES[0], text, 9), cosign(WITNESSES[1], text, 9)
    forged = type(other)(other.name, other.key_id, other.data[:-1] + bytes([other.data[-1] ^ 1]))
    refused(witnessed_by(good, forged), ["cosignature_invalid"], policy_of(*WITNESSES[:2], quorum=1))
    plain = type(other)(other.name, other.key_id, SIGNER.sign(text).data)
    refused(witnessed_by(good, plain), ["cosignature_invalid"], policy_of(*WITNESSES[:2]))


def test_a_cosignature_of_another_checkpoint_is_refused() -> None:
    earlier = cosign(WITNESSES[0], whole_log().note(size=299).text, 9)
    refused(witnessed_by(earlier), ["cosignature_invalid"], policy_of(WITNESSES[0]))


def test_a_log_is_no_witness_of_itself() -> None:
    own = seeded("independent.example/honest", 1, COSIGNATURE)
    document = witnessed_by(cosign(own, whole_log().note().text, 9))
    refused(document, ["witness_is_signer"], policy_of(own))
    text = whole_log().note().text
    terms = [SignerTerm(key=str(NEXT_SIGNER.verifier), added=1, retired=1000)]
    hidden = seeded("independent.example/honest", 2, COSIGNATURE)
    note = Note(text, (*whole_log().note().signatures, cosign(hidden, text, 9)))
    refused(whole_log().receipt(3, note, history=terms), ["witness_is_signer"], policy_of(hidden))


# Content.


def test_content_is_what_the_wire_names() -> None:
    document = whole_receipt()
    other = b64encode(b"another body").decode()
    refused(offline(document, content=[other]), ["content_not_named"], Policy())
    refused(offline(document, content=["%%%"]), ["base64_malformed"], Policy())
    shorter = {"sha256": orjson.loads(document["offline"]["wire"])["payload"]["content_ref"]["sha256"], "bytes": 5}
    log = SmallLog(1)
    log.append(claimed(2, content_ref=shorter))
    refused(log.receipt(2, content=[BODY]), ["content_length"], Policy())


# Anchors.


def anchored(rows: list[dict[str, Any]], brought: list[dict[str, Any]]) -> Any:
    from redkey.ledger.mirror import parse_row

    policy = Policy(keys=SIGNED.keys, mirror=tuple(parse_row(row) for row in brought))
    return judged(whole_receipt(anchor=rows), policy)


def test_an_anchor_holds_by_rows_that_the_caller_brought() -> None:
    first, row, after = anchor_rows()
    for rows, brought in (
        ([first, row], [row]),
        ([first], [row]),
        ([], [first, row]),
        ([first, row], [after]),
        ([first, row, after], [after]),
        ([], [after, row, first]),
    ):
        assert anchored(rows, brought).holds("anchored"), (len(rows), len(brought))


def test_an_anchor_that_nobody_brought_does_not_hold_but_is_described() -> None:
    first, row, after = anchor_rows()
    for brought in ([], [first]):
        verdict = anchored([first, row], brought)
        assert not verdict.holds("anchored")
        assert "message 2" in verdict.levels["anchored"].why
    assert not anchored([row], [row]).holds("anchored"), "its own hash was never checked"
    assert not anchored([first, after], [after]).holds("anchored")


def test_rows_that_are_wrong_or_anchor_something_else_do_not_hold() -> None:
    first, row, after = anchor_rows()
    assert anchored([first, {**row, "message": first["message"]}], [after]).findings[0].code == "anchor_row_bad"
    assert anchored([first, {**row, "payer_account_id": "0.0.3"}], [row]).findings[0].code == "anchor_row_bad"
    assert anchored([{**first, "message": "%"}], [row]).findings[0].code == "row_malformed"
    assert anchored([first], [first]).findings[0].code == "anchor_not_found"
    elsewhere = Policy(keys=SIGNED.keys, mirror=whole_policy().mirror)
    other = whole_log().receipt(3, whole_log().note(size=299), anchor=anchor_rows())
    assert judged(other, elsewhere).findings[0].code == "anchor_not_found"


def test_rows_forged_for_a_topic_do_not_lead_to_what_a_mirror_says() -> None:
    first, row, after = anchor_rows()
    late = {**after, "consensus_timestamp": hedera_time(1_778_177_900 * 10**9 + 9)}
    assert not anchored([first, row], [late]).holds("anchored")


# Size and speed of what is made.


def test_a_receipt_is_small() -> None:
    log = whole_log()
    document = log.receipt(SEQUENCE)
    wire = len(log.records[SEQUENCE - 1].wire)
    assert len(orjson.dumps(document)) - wire < 2_100
    assert len(document["offline"]["proof"]) < 1_000
