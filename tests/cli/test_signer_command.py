"""`redkey signer` and `redkey receipt export`: rotation, witnesses and receipts without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from tests.harness.tampering import records
from tests.harness.workshop import checked, lived_in


def redkey(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def said(*arguments: object) -> str:
    result = redkey(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lived_in(tmp_path / "data")


def wire_id(directory: Path, sequence: int) -> str:
    found: str = json.loads(records(directory)[sequence - 1].wire)["wire_id"]
    return found


def test_a_rotation_from_beginning_to_end(directory: Path) -> None:
    old = (directory / "keys" / "signer-0001.pub").read_text().strip()
    assert f"signs    {old}" in said("signer", "list", directory)
    assert said("signer", "list", directory, "-q") == f"{old}\n"
    assert json.loads(said("signer", "list", directory, "--json").splitlines()[0]) == {"signs": old}
    new = said("signer", "rotate", directory).strip()
    both = said("signer", "list", directory, "--topic", "1.0.1001")
    assert f"signs    {old}\nsigns    {new}\n" in both
    assert f"retired  {old}" in said("signer", "retire", directory, old.split("+")[1])
    after = said("signer", "list", directory)
    assert after.count("signs") == 1
    assert "retired by record 749" in after
    assert checked(directory).clean


def test_a_key_that_does_not_sign_cannot_be_retired(directory: Path) -> None:
    assert redkey("signer", "retire", directory, "00000000").exit_code == 2
    (key,) = [line.split()[1] for line in said("signer", "list", directory).splitlines() if line.startswith("signs")]
    last = redkey("signer", "retire", directory, key)
    assert last.exit_code == 1
    assert "key_last" in last.output


def test_a_receipt_is_had_without_a_server_and_verified_with_the_key_alone(directory: Path, tmp_path: Path) -> None:
    event = "evt_" + wire_id(directory, 300).removeprefix("wire_")
    said("receipt", "export", directory, event, "--out", tmp_path / "receipt.json", "--url", "https://redkey.example")
    key = directory / "keys" / "signer-0001.pub"
    assert "signed     holds" in said("receipt", "verify", tmp_path / "receipt.json", "--key", key)
    document = json.loads((tmp_path / "receipt.json").read_bytes())
    assert document["verification"]["receiptUrl"] == f"https://redkey.example/receipts/{event}"


def test_a_bare_proof_can_be_had_too(directory: Path, tmp_path: Path) -> None:
    said("receipt", "export", directory, wire_id(directory, 10), "--tlog-proof", "--out", tmp_path / "proof")
    assert (tmp_path / "proof").read_text().startswith("c2sp.org/tlog-proof@v1\nextra ")
    said("receipt", "verify", tmp_path / "proof", "--key", directory / "keys" / "signer-0001.pub")


def test_an_event_that_is_not_there_is_a_wrong_use(directory: Path) -> None:
    for more in ((), ("--tlog-proof",), ("--topic", "1.0.1001")):
        result = redkey("receipt", "export", directory, "evt_01M3250V0000000000000ZZZZZ", *more)
        assert result.exit_code == 2
        assert "there is no event" in result.output


def test_content_goes_along_when_asked_for(directory: Path) -> None:
    sequence = next(one.sequence for one in records(directory) if b'"task.created"' in one.wire)
    told = json.loads(said("receipt", "export", directory, wire_id(directory, sequence), "--content"))
    assert len(told["offline"]["content"]) == 1


def test_a_witness_cosigns_and_receipts_are_witnessed(directory: Path, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    said("witness", "init", "--name", "witness.example/w", "--dir", witness)
    said("witness", "trust", "--dir", witness, (directory / "keys" / "signer-0001.pub").read_text().strip())
    for old, size in ((0, 747), (747, 748)):
        (tmp_path / "request").write_text(said("signer", "checkpoint", directory, "--old", old))
        (tmp_path / "answer").write_text(said("witness", "cosign", "--dir", witness, tmp_path / "request"))
        told = said("signer", "cosigned", directory, tmp_path / "answer", "--witness", witness / "witness.pub")
        assert f"size {size} is witnessed" in told
        said("signer", "rotate", directory)
    said("receipt", "export", directory, wire_id(directory, 5), "--out", tmp_path / "receipt.json")
    keys = ("--key", directory / "keys" / "signer-0001.pub", "--witness", witness / "witness.pub")
    assert "witnessed  does not hold" in redkey("receipt", "verify", tmp_path / "receipt.json", *keys).output
    assert checked(directory).clean


def test_the_newest_checkpoint_is_printed_as_it_was_signed(directory: Path) -> None:
    assert said("signer", "checkpoint", directory) == (directory / "checkpoints" / "1.0.1001").read_text()
    assert redkey("signer", "checkpoint", directory, "--old", 9999).exit_code == 2


def test_a_cosignature_of_something_else_is_refused(directory: Path, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    said("witness", "init", "--name", "witness.example/w", "--dir", witness)
    other = lived_in(tmp_path / "other")
    said("signer", "rotate", other)
    (tmp_path / "request").write_text(said("signer", "checkpoint", other, "--old", 0))
    key = (other / "keys" / "signer-0001.pub").read_text().strip()
    (tmp_path / "answer").write_text(
        said("witness", "cosign", "--dir", witness, "--log-key", key, tmp_path / "request")
    )
    result = redkey("signer", "cosigned", directory, tmp_path / "answer", "--witness", witness / "witness.pub")
    assert result.exit_code == 1
    assert "cosignature_unknown" in result.output


@pytest.mark.parametrize(
    "command",
    [
        "fsck",
        "backup",
        "restore",
        "ledger dump",
        "ledger load",
        "ledger tail",
        "ledger replay",
        "ledger export",
        "receipt export",
        "signer checkpoint",
    ],
)
def test_help_has_an_example_on_a_line_of_its_own(command: str) -> None:
    text = said(*command.split(), "--help")
    assert f"\n    redkey {command} " in text
    assert "\\b" not in text
