"""`redkey receipt verify` needs a file and keys, and nothing else: it names the levels that hold and exits by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from redkey.cli import main, screen
from redkey.ledger.receipt import self_contained
from redkey.ledger.running_hash import record_preimage
from tests.harness.small_log import ORIGIN, OTHER_LOG, SIGNER, WITNESSES, SmallLog
from tests.harness.whole_receipt import SEQUENCE, anchor_rows, whole_log, whole_receipt

KEY = str(SIGNER.verifier)
WITNESS = [str(witness.verifier) for witness in WITNESSES]


def verify(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["receipt", "verify", *map(str, arguments)], input=stdin)


def told(*arguments: object) -> dict[str, Any]:
    result = verify("--json", *arguments)
    answer: dict[str, Any] = json.loads(result.output)
    assert result.exit_code == (0 if answer["passed"] else 1)
    return answer


def holding(answer: dict[str, Any]) -> list[str]:
    return [name for name, level in answer["levels"].items() if level["holds"]]


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    path = tmp_path / "receipt.json"
    path.write_bytes(orjson.dumps(whole_receipt()))
    return path


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    path = tmp_path / "mirror.json"
    path.write_text(json.dumps({"messages": anchor_rows()}))
    return path


def test_without_keys_integrity_is_shown_and_nobody_is_believed(receipt: Path) -> None:
    result = verify(receipt)
    assert result.exit_code == 0
    assert "integrity  holds" in result.output
    assert "signed     does not hold  no key was given to check with" in result.output
    assert "nobody vouched" in result.output


def test_on_a_narrow_terminal_no_word_of_a_verdict_breaks(receipt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = verify(receipt, "--key", KEY).output
    monkeypatch.setattr(screen, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    lines = verify(receipt, "--key", KEY).output.splitlines()
    # Ids, origins and times are one word each, and the longest are wider than the rest of the line.
    assert [line for line in lines if len(line) > 60 and len(line.split()) > 1] == []
    assert " ".join(lines).split() == plain.split()


def test_all_levels_hold_with_everything_that_is_needed(receipt: Path, mirror: Path) -> None:
    arguments = (receipt, "--key", KEY, "--witness", WITNESS[0], "--witness", WITNESS[1], "--mirror", mirror)
    answer = told(*arguments)
    assert holding(answer) == ["integrity", "signed", "witnessed", "anchored"]
    assert answer["event"]["sequence"] == SEQUENCE
    assert answer["checkpoint"]["origin"] == ORIGIN
    assert answer["effect"] == {"status": "applied"}
    assert answer["asked"] == ["integrity", "signed", "witnessed", "anchored"]
    result = verify(*arguments)
    assert result.exit_code == 0
    assert "effect     applied, signed by the log" in result.output
    assert f"record {SEQUENCE} of 2026-05-07T" in result.output


def test_keys_come_from_files_too(receipt: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# two logs\n{OTHER_LOG.verifier}\n{KEY}\n")
    assert holding(told(receipt, "--key", path)) == ["integrity", "signed"]
    path.write_text(f"{SIGNER.verifier.named(ORIGIN)} retired 300\n")
    answer = told(receipt, "--key", path)
    assert answer["passed"] is False
    assert answer["findings"][0]["code"] == "signer_retired"


def test_a_level_that_was_asked_for_and_does_not_hold_is_exit_1(receipt: Path) -> None:
    result = verify(receipt, "--key", OTHER_LOG.verifier)
    assert result.exit_code == 1
    assert "key_other_log" in result.output
    assert "refused: not every level that was asked for holds" in result.output
    assert told(receipt, "--witness", WITNESS[0], "--witness", WITNESS[2])["passed"] is False
    few = ("--witness", WITNESS[0], "--witness", WITNESS[2], "--witness-quorum", "1")
    assert told(receipt, *few)["passed"] is True


def test_a_changed_receipt_is_refused_and_the_field_is_named(receipt: Path) -> None:
    document = whole_receipt()
    receipt.write_bytes(orjson.dumps({**document, "actor": {"type": "agent", "id": "agt_me"}}))
    answer = told(receipt, "--key", KEY)
    assert (answer["passed"], answer["event"], holding(answer)) == (False, None, [])
    assert (answer["findings"][0]["code"], answer["findings"][0]["pointer"]) == ("field_mismatch", "/actor")
    assert "nothing is proven" in verify(receipt, "--key", KEY).output


def test_a_reader_is_told_what_a_signature_alone_does_not_show(receipt: Path, mirror: Path) -> None:
    told_so = "only a witness or an anchor shows"
    assert told_so in verify(receipt, "--key", KEY).output
    assert told_so not in verify(receipt, "--key", KEY, "--mirror", mirror).output
    assert told_so not in verify(receipt, "--key", KEY, "--witness", WITNESS[0]).output


def test_standard_input_is_read(receipt: Path) -> None:
    assert verify("-", "--key", KEY, stdin=receipt.read_bytes()).exit_code == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json", '{"eventId":1}', "c2sp.org/tlog-proof@v1\nindex 0\n"])
def test_a_file_that_is_no_receipt_is_refused_not_a_crash(tmp_path: Path, text: str) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(text)
    answer = told(path, "--key", KEY)
    assert answer["passed"] is False
    assert answer["findings"][0]["code"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--key", "nonsense"],
        ["--key", "a+b+c"],
        ["--key", KEY.replace("+", "+0", 1)],
        ["--key", WITNESS[0]],
        ["--witness", KEY],
        ["--witness", WITNESS[0], "--witness", WITNESS[0]],
        ["--witness", WITNESS[0], "--witness-quorum", "2"],
        ["--witness-quorum", "1"],
        ["--witness", WITNESS[0], "--witness-quorum", "0"],
        ["--leaf", __file__],
        ["--record", __file__],
        ["--mirror", __file__],
        ["--key", os.devnull],
    ],
)
def test_wrong_use_is_exit_2(receipt: Path, arguments: list[str]) -> None:
    result = verify(receipt, *arguments)
    assert result.exit_code == 2, result.output


def test_a_missing_file_is_a_wrong_use(tmp_path: Path) -> None:
    assert verify(tmp_path / "none").exit_code == 2


def test_a_proof_that_carries_its_record_verifies_alone(tmp_path: Path) -> None:
    log = whole_log()
    proof = self_contained(log.records[4], log.previous(5), log.proof(5))
    path = tmp_path / "record.tlog-proof"
    path.write_bytes(proof.encode())
    answer = told(path, "--key", KEY)
    assert holding(answer) == ["integrity", "signed"]
    assert answer["event"]["sequence"] == 5
    other = self_contained(log.records[5], log.previous(6), log.proof(5))
    path.write_bytes(other.encode())
    assert told(path, "--key", KEY)["findings"][0]["code"] == "running_hash_wrong"


def test_a_bare_proof_needs_its_leaf_or_its_record(tmp_path: Path) -> None:
    log = whole_log()
    path, leaf, record = tmp_path / "p.tlog-proof", tmp_path / "leaf", tmp_path / "record.json"
    path.write_bytes(log.proof(5).encode())
    assert verify(path).exit_code == 2
    leaf.write_bytes(record_preimage(log.previous(5), log.records[4]))
    assert holding(told(path, "--key", KEY, "--leaf", leaf)) == ["integrity", "signed"]
    leaf.write_bytes(record_preimage(log.previous(6), log.records[5]))
    assert told(path, "--key", KEY, "--leaf", leaf)["findings"][0]["code"] == "inclusion_wrong"
    offline = log.receipt(5)["offline"]
    record.write_bytes(orjson.dumps({"wire": offline["wire"], "internal": offline["internal"]}))
    assert told(path, "--key", KEY, "--record", record)["event"]["sequence"] == 5
    record.write_bytes(orjson.dumps({"wire": offline["wire"], "internal": {}}))
    assert told(path, "--key", KEY, "--record", record)["findings"][0]["code"] == "record_malformed"


def test_a_proof_of_another_log_than_redkey_verifies_by_its_leaf(tmp_path: Path) -> None:
    """The leaves of any tlog will do: here a log of plain words, with an origin of another make."""
    from redkey.ledger import merkle
    from redkey.ledger.checkpoint import Checkpoint, sign_checkpoint
    from redkey.ledger.proof import LogProof
    from tests.harness.small_log import seeded

    words = [b"one", b"two", b"three"]
    hashes = [merkle.leaf_hash(word) for word in words]
    checkpoint = Checkpoint("example.com/words", 3, merkle.root(hashes))
    signer = seeded("example.com/words", 8)
    path, leaf = tmp_path / "two.tlog-proof", tmp_path / "two"
    proof = merkle.inclusion_proof(
        1, 3, lambda height, index: merkle.root(hashes[index << height : index + 1 << height])
    )
    path.write_bytes(LogProof(1, tuple(proof), checkpoint, sign_checkpoint(checkpoint, [signer])).encode())
    leaf.write_bytes(b"two")
    assert holding(told(path, "--key", signer.verifier, "--leaf", leaf)) == ["integrity", "signed"]


def test_what_a_stranger_wrote_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    log = SmallLog(1)
    wire = orjson.loads(log.records[0].wire)
    log = SmallLog()
    log.append(orjson.dumps({**wire, "type": "task.\x1b[2Jx"}, option=orjson.OPT_SORT_KEYS))
    path = tmp_path / "receipt.json"
    path.write_bytes(orjson.dumps(log.receipt(1)))
    result = verify(path, "--key", KEY)
    assert result.exit_code == 0
    assert "\x1b[2J" not in result.output


def test_a_stranger_verifies_elsewhere_with_nothing_but_the_file_and_the_key(tmp_path: Path) -> None:
    """Another directory, an empty environment, no network (a proxy that is nowhere), the installed command."""
    (tmp_path / "receipt.json").write_bytes(orjson.dumps(whole_receipt()))
    (tmp_path / "log.key").write_text(KEY + "\n")
    command = [str(Path(sys.executable).with_name("redkey")), "receipt", "verify", "receipt.json", "--key", "log.key"]
    environment = {"HOME": str(tmp_path), "LC_ALL": "C", "https_proxy": "http://127.0.0.1:1", "PYTHONSAFEPATH": "1"}
    good = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stderr
    assert "signed     holds" in good.stdout
    changed = {**whole_receipt(), "effect": {"status": "void", "reason": "nobody_says"}}
    (tmp_path / "receipt.json").write_bytes(orjson.dumps(changed))
    bad = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "attestation_invalid" in bad.stdout
