"""Key files are made once, readable by their owner alone, never replaced silently, and rotate through any crash."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from redkey.errors import KeyRefused
from redkey.ledger.note import COSIGNATURE, ED25519, parse_key
from redkey.ledger.signer import Signer
from redkey.stores import keys as keys_module
from redkey.stores.durable import create_file, replace_file
from redkey.stores.keys import SignerKeys, read_key, write_key

NAME = "redkey/0k3j4h5k6j7h8g9f"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def ids(keys: SignerKeys) -> list[str]:
    return [signer.verifier.key_id.hex() for signer in keys.signers()]


def test_the_first_start_makes_one_key_and_later_starts_find_it(directory: Path) -> None:
    (first,) = SignerKeys(directory, NAME).signers()
    (again,) = SignerKeys(directory, NAME).signers()
    assert first.verifier == again.verifier
    assert first.verifier.name == NAME
    assert parse_key((directory / "signer-0001.pub").read_text()) == first.verifier


def test_the_secret_is_for_its_owner_alone_whatever_the_umask(directory: Path) -> None:
    before = os.umask(0)
    try:
        SignerKeys(directory, NAME).signers()
    finally:
        os.umask(before)
    assert mode(directory / "signer-0001.key") == 0o600
    assert mode(directory / "signer-0001.pub") == 0o644
    assert mode(directory) == 0o700


def test_no_part_of_a_secret_stays_beside_its_file(directory: Path) -> None:
    SignerKeys(directory, NAME).signers()
    assert sorted(path.name for path in directory.iterdir()) == ["lock", "signer-0001.key", "signer-0001.pub"]


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o777])
def test_a_secret_that_others_may_touch_is_refused(directory: Path, bits: int) -> None:
    SignerKeys(directory, NAME).signers()
    (directory / "signer-0001.key").chmod(bits)
    with pytest.raises(KeyRefused, match=f"mode {bits:04o}") as refused:
        SignerKeys(directory, NAME).signers()
    assert refused.value.code == "key_exposed"


def test_a_link_or_anything_but_a_file_is_refused(directory: Path, tmp_path: Path) -> None:
    keys = SignerKeys(directory, NAME)
    keys.signers()
    path = directory / "signer-0001.key"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyRefused) as refused:
        keys.signers()
    assert refused.value.code == "key_unreadable"
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(KeyRefused, match="not a regular file"):
        keys.signers()


@pytest.mark.parametrize("text", ["", "hello", "PRIVATE+KEY+x+y+z", "\udcff"])
def test_a_file_that_is_no_key_is_refused(directory: Path, text: str) -> None:
    keys = SignerKeys(directory, NAME)
    keys.signers()
    replace_file(directory / "signer-0001.key", text.encode(errors="surrogateescape"))
    with pytest.raises(KeyRefused):
        keys.signers()


def test_the_key_of_another_log_is_refused(directory: Path) -> None:
    SignerKeys(directory, "redkey/another").signers()
    with pytest.raises(KeyRefused) as refused:
        SignerKeys(directory, NAME).signers()
    assert refused.value.code == "key_other_log"


def test_a_witness_key_is_no_signing_key(tmp_path: Path) -> None:
    write_key(tmp_path / "k", Signer.generate("w.example", COSIGNATURE))
    with pytest.raises(KeyRefused) as refused:
        read_key(tmp_path / "k", ED25519)
    assert refused.value.code == "key_type_wrong"


def test_a_key_is_never_written_over(tmp_path: Path) -> None:
    first = Signer.generate("w.example", COSIGNATURE)
    write_key(tmp_path / "k", first)
    with pytest.raises(KeyRefused, match="exists already"):
        write_key(tmp_path / "k", Signer.generate("w.example", COSIGNATURE))
    assert read_key(tmp_path / "k", COSIGNATURE).verifier == first.verifier


def test_a_lost_secret_is_said_and_not_replaced(directory: Path) -> None:
    keys = SignerKeys(directory, NAME)
    (lost,) = keys.signers()
    (directory / "signer-0001.key").unlink()
    with pytest.raises(KeyRefused, match="is missing") as refused:
        keys.signers()
    assert refused.value.code == "key_lost"
    added = keys.add()
    keys.retire(lost.verifier)
    assert ids(keys) == [added.verifier.key_id.hex()]


def test_rotation_adds_a_key_that_signs_beside_the_old_until_it_retires(directory: Path) -> None:
    keys = SignerKeys(directory, NAME)
    (old,) = keys.signers()
    new = keys.add()
    assert ids(keys) == [old.verifier.key_id.hex(), new.verifier.key_id.hex()]
    keys.retire(old.verifier)
    assert ids(SignerKeys(directory, NAME)) == [new.verifier.key_id.hex()]
    assert keys.retired() == [old.verifier]
    assert not (directory / "signer-0001.key").exists()
    assert keys.add().verifier.key_id.hex() in ids(keys)
    assert (directory / "signer-0003.key").exists()


def test_the_last_key_and_unknown_keys_are_not_retired(directory: Path) -> None:
    keys = SignerKeys(directory, NAME)
    (only,) = keys.signers()
    with pytest.raises(KeyRefused) as refused:
        keys.retire(only.verifier)
    assert refused.value.code == "key_last"
    with pytest.raises(KeyRefused) as refused:
        keys.retire(Signer.generate(NAME).verifier)
    assert refused.value.code == "key_unknown"
    assert ids(keys) == [only.verifier.key_id.hex()]


def test_a_retirement_that_was_cut_off_is_finished_at_the_next_start(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = SignerKeys(directory, NAME)
    (old,) = keys.signers()
    new = keys.add()

    def power_cut(path: Path) -> None:
        raise OSError("power cut")

    monkeypatch.setattr(keys_module, "remove_file", power_cut)
    with pytest.raises(OSError, match="power cut"):
        keys.retire(old.verifier)
    monkeypatch.undo()
    assert (directory / "signer-0001.key").exists()
    assert ids(SignerKeys(directory, NAME)) == [new.verifier.key_id.hex()]
    assert not (directory / "signer-0001.key").exists()


def test_a_creation_that_was_cut_off_between_its_two_files_is_finished(directory: Path) -> None:
    keys = SignerKeys(directory, NAME)
    (made,) = keys.signers()
    (directory / "signer-0001.pub").unlink()
    assert [signer.verifier for signer in keys.signers()] == [made.verifier]
    assert parse_key((directory / "signer-0001.pub").read_text()) == made.verifier


def test_many_processes_that_start_at_once_share_one_key(directory: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from redkey.stores.keys import SignerKeys\n"
        "sys.stdin.readline()\n"
        f"print([str(one.verifier) for one in SignerKeys(Path(sys.argv[1]), '{NAME}').signers()])"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for process in running:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = {process.communicate()[0] for process in running}
    assert len(answers) == 1
    assert sorted(path.name for path in directory.glob("*.key")) == ["signer-0001.key"]


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_a_file_has_exactly_the_mode_that_was_asked_for(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        replace_file(tmp_path / "secret", b"x", 0o600)
        create_file(tmp_path / "public", b"x", 0o644)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "secret"), mode(tmp_path / "public")) == (0o600, 0o644)


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    replace_file(path, b"old")

    def fails(descriptor: int) -> None:
        raise OSError("disk")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="disk"):
        replace_file(path, b"new")
    with pytest.raises(OSError, match="disk"):
        create_file(tmp_path / "other", b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path], "nothing is left beside it"
    assert create_file(tmp_path / "other", b"one")
    assert not create_file(tmp_path / "other", b"two")
    assert (tmp_path / "other").read_bytes() == b"one"
