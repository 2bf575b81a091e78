"""Notes and keys are read and written byte for byte as other implementations of C2SP signed-note do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import KeyRefused, ProofRefused
from redkey.ledger.note import COSIGNATURE, ED25519, Note, parse_key, parse_note, verifies
from redkey.ledger.signer import Signer, sign_note
from tests.harness.small_log import SIGNER, WITNESSES, seeded

# The example of c2sp.org/signed-note.
SPEC_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SPEC_NOTE = (
    "This is an example message.\n\n— example.com/foo "
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
# The keys and notes of Go's golang.org/x/mod/sumdb/note, which the format comes from.
GO_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_OTHER_KEY = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
GO_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
GO_LINE = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
GO_OTHER_LINE = (
    "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
# A tree head that Go's checksum database published, and its key.
SUMDB_KEY = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
SUMDB_NOTE = (
    "go.sum database tree\n13485\n/ZWur4obeiqK+ASdnPK+/Rmz6LPQMUeSmHh0+UkL54Y=\n\n— sum.golang.org "
    "Az3grnQReYTvpCrRxT+w50vixbqBlB/aPS8bL8f8KW4HHP+UjLSXOJgCh4f54n8hO6lrESglzyRXMXnhaWzaeY3zqw8=\n"
)
# A witness's key of the wild, as its operator publishes it.
WITNESS_KEY = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"


def signed(key_text: str, note_text: str) -> bool:
    key, note = parse_key(key_text), parse_note(note_text.encode())
    assert note.encode() == note_text.encode()
    lines = note.by(key)
    return bool(lines) and all(verifies(key, line, note.text) for line in lines)


@pytest.mark.parametrize(
    ("key", "note"),
    [
        (SPEC_KEY, SPEC_NOTE),
        (GO_KEY, f"{GO_TEXT}\n{GO_LINE}"),
        (GO_KEY, f"{GO_TEXT}\n{GO_LINE}{GO_OTHER_LINE}"),
        (GO_OTHER_KEY, f"{GO_TEXT}\n{GO_LINE}{GO_OTHER_LINE}"),
        (SUMDB_KEY, SUMDB_NOTE),
    ],
)
def test_notes_of_other_implementations_verify(key: str, note: str) -> None:
    assert signed(key, note)


def test_a_note_is_signed_byte_for_byte_as_go_signs_it() -> None:
    signer = Signer.parse(GO_SECRET)
    assert str(signer.verifier) == GO_KEY
    assert signer.private_text() == GO_SECRET
    assert sign_note(GO_TEXT.encode(), signer).encode() == f"{GO_TEXT}\n{GO_LINE}".encode()


@pytest.mark.parametrize("text", [SPEC_KEY, GO_KEY, GO_OTHER_KEY, SUMDB_KEY, WITNESS_KEY])
def test_keys_of_other_implementations_read_back_the_same(text: str) -> None:
    assert str(parse_key(text)) == text
    assert str(parse_key(f"  {text}\n")) == text


def test_the_kind_of_a_key_changes_its_id() -> None:
    log, witness = seeded("same.example", 5, ED25519), seeded("same.example", 5, COSIGNATURE)
    assert log.verifier.public_key == witness.verifier.public_key
    assert log.verifier.key_id != witness.verifier.key_id


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "key_malformed"),
        ("name", "key_malformed"),
        ("name+530d903a", "key_malformed"),
        (SPEC_KEY.replace("foo", "f o"), "key_malformed"),
        ("+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "key_malformed"),
        (SPEC_KEY.replace("530d903a", "530d903b"), "key_id_wrong"),
        (SPEC_KEY.replace("530d903a", "530D903A"), "key_id_wrong"),
        (SPEC_KEY.replace("foo", "fop"), "key_id_wrong"),
        (SPEC_KEY.replace("U2k", "U2l"), "key_id_wrong"),
        (SPEC_KEY + "=", "key_malformed"),
        (SPEC_KEY[:-4], "key_type_unknown"),
        (SPEC_KEY.replace("+Aeky", "+Aiky"), "key_type_unknown"),
        (SPEC_KEY.replace("+Aeky", "+!eky"), "key_malformed"),
    ],
)
def test_a_mangled_key_is_refused(text: str, code: str) -> None:
    with pytest.raises(KeyRefused) as refused:
        parse_key(text)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        GO_SECRET[1:],
        GO_SECRET[:-1],
        GO_SECRET.replace("c74f20a3", "c74f20a4"),
        GO_SECRET.replace("+AYEK", "+ArEK"),
        GO_SECRET.replace("Peter", "Petra"),
        GO_KEY,
    ],
)
def test_a_mangled_secret_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(KeyRefused) as refused:
        Signer.parse(text)
    assert "AYEK" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_signer_never_shows_its_secret() -> None:
    shown = f"{SIGNER!r} {SIGNER}"
    assert SIGNER.private_text().rpartition("+")[2] not in shown
    assert str(SIGNER.verifier) in shown


def test_names_that_c2sp_forbids_are_refused() -> None:
    for name in ("", "a b", "a+b", "a\u00a0b", "a\u2003b", "a\tb", "a\nb", "n" * 256):
        with pytest.raises(KeyRefused):
            Signer.generate(name)


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n\n",
        "text\n",
        "text\n\n",
        f"{GO_TEXT}{GO_LINE}",
        f"{GO_TEXT}\n{GO_LINE}"[:-1],
        f"{GO_TEXT}\n{GO_LINE}\n",
        f"{GO_TEXT}\n{GO_LINE}trailing\n",
        f"{GO_TEXT}\n{GO_LINE}".replace("—", "-"),
        f"{GO_TEXT}\n{GO_LINE}".replace("— ", "—"),
        f"{GO_TEXT}\n{GO_LINE}".replace("PeterNeumann", "Peter+Neumann"),
        f"{GO_TEXT}\n{GO_LINE}".replace("PeterNeumann ", "PeterNeumann  "),
        f"{GO_TEXT}\n{GO_LINE}".replace("JnAM=", "JnAN="),
        f"{GO_TEXT}\n{GO_LINE}".replace("JnAM=", "JnAM"),
        f"{GO_TEXT}\n{GO_LINE}".replace("x08g", "x08-"),
        f"{GO_TEXT}\n— PeterNeumann x08gow==\n",
        f"{GO_TEXT}\r\n\n{GO_LINE}",
        f"te\x00xt\n\n{GO_LINE}",
        f"te\txt\n\n{GO_LINE}",
        f"{GO_TEXT}\n" + GO_LINE * 65,
        "x" * (128 * 1024) + f"\n\n{GO_LINE}",
    ],
)
def test_what_is_not_exactly_a_note_is_refused(note: str) -> None:
    with pytest.raises(ProofRefused):
        parse_note(note.encode())


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(ProofRefused):
        parse_note(b"te\xffxt\n\n" + GO_LINE.encode())


def test_a_text_may_hold_empty_lines_and_many_signatures() -> None:
    note = sign_note(b"one\n\ntwo\n\n", *(seeded(f"s{number}.example", number + 1) for number in range(64)))
    assert parse_note(note.encode()) == note


def test_a_key_of_the_same_name_or_id_is_another_key() -> None:
    note = parse_note(f"{GO_TEXT}\n{GO_LINE}".encode())
    assert not note.by(parse_key(GO_KEY).named("EnochRoot"))
    assert not note.by(seeded("PeterNeumann", 9).verifier)


def test_every_flipped_bit_of_a_signed_note_is_seen() -> None:
    data = f"{GO_TEXT}\n{GO_LINE}".encode()
    key = parse_key(GO_KEY)
    for position in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            try:
                note = parse_note(bytes(changed))
            except ProofRefused:
                continue
            lines = note.by(key)
            assert not lines or not verifies(key, lines[0], note.text), (position, bit)


def test_a_witness_key_does_not_sign_and_a_log_key_does_not_verify_its_lines() -> None:
    with pytest.raises(KeyRefused, match="only cosigns"):
        WITNESSES[0].sign(b"text\n")
    line = SIGNER.sign(b"text\n")
    assert verifies(SIGNER.verifier, line, b"text\n")
    assert not verifies(seeded(SIGNER.verifier.name, 1, COSIGNATURE).verifier, line, b"text\n")


_LINES = st.text(st.characters(min_codepoint=32, blacklist_categories=["Cs"]), max_size=30)


@given(st.lists(_LINES, min_size=1, max_size=5))
def test_any_text_is_signed_and_read_back(lines: list[str]) -> None:
    note = sign_note("".join(f"{line}\n" for line in lines).encode(), SIGNER)
    assert parse_note(note.encode()) == note
    assert verifies(SIGNER.verifier, note.signatures[0], note.text)


@given(st.binary(max_size=300))
def test_parsing_refuses_or_round_trips(data: bytes) -> None:
    try:
        note = parse_note(data)
    except ProofRefused:
        return
    assert isinstance(note, Note)
    assert note.encode() == data
