"""Every bit of a store flipped, every page cut off: fsck names it, or nothing that is stored has changed.

In the ordinary size one bit of each byte of every record, hash, checkpoint and tile is tried, and of every byte that
holds pages together; of what is left (free space, bodies, copies of the same pages in the log) one in a few. With
REDKEY_TEST_LONG=1 it is every bit of every byte of every file.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from redkey.errors import KeyRefused, ProofRefused
from redkey.ledger.checkpoint import open_checkpoint
from redkey.stores.keys import SignerKeys
from tests.crash.recording import memory_folder
from tests.harness.small_store import small_stores
from tests.harness.workshop import lived_in
from tests.services.flips import DATABASE, LOG, Specimen

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
# How many bits of a byte are tried, and of bytes that nothing hangs on one in so many.
BITS, STRIDE = (8, 1) if LONG else (1, 13)
SHARES = 16 if LONG else 4
PAGE, FRAME, LOG_HEADER, FRAME_HEADER = 4096, 4096 + 24, 32, 24

Tell = Callable[[str], None]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="redkey-flips-", dir=memory_folder()) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def stores(folder: Path) -> tuple[Path, Path]:
    return small_stores(folder)


@pytest.fixture(scope="module")
def died(stores: tuple[Path, Path]) -> Specimen:
    """The small store with its last units in the log alone."""
    return Specimen(stores[0])


@pytest.fixture(scope="module")
def closed(stores: tuple[Path, Path]) -> Specimen:
    """The small store, all of it in the database."""
    for name in (LOG, f"{DATABASE}-shm"):
        (stores[1] / name).unlink(missing_ok=True)
    return Specimen(stores[1])


@pytest.fixture(scope="module")
def tiled(folder: Path) -> Specimen:
    """A store with Merkle tiles."""
    directory = lived_in(folder / "tiled")
    for name in (LOG, f"{DATABASE}-shm"):
        (directory / name).unlink(missing_ok=True)
    return Specimen(directory)


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    return lambda text: record_property("proven", text)


def bits_of(offset: int) -> Iterator[int]:
    """The bits of a byte that are tried; another one for each place when it is not all."""
    return iter(range(8)) if LONG else iter((offset % 8,))


def rows(specimen: Specimen, sql: str) -> list[tuple[bytes, ...]]:
    connection = sqlite3.connect(f"file:{specimen.directory / DATABASE}?mode=ro", uri=True)
    connection.text_factory = bytes
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_a_specimen_is_sound_as_it_is(died: Specimen, closed: Specimen, tiled: Specimen) -> None:
    for specimen in (died, closed, tiled):
        assert specimen.report().clean, specimen.report().faults
    # All of the same ledger, whose end the one has in its log alone.
    assert died.tables() == closed.tables()
    assert died.size(LOG) > 10 * FRAME
    assert died.size(DATABASE) <= closed.size(DATABASE)


# Records, hashes, tiles: what is damaged is named by its place.


def _records(specimen: Specimen) -> list[tuple[int, range]]:
    """Where in the file the values of each record stand: time, payer, running hash, subjects and wire in one run."""
    data = specimen.bytes(DATABASE)
    found = []
    for position, payer, running_hash, subjects, wire in rows(
        specimen, "SELECT position, payer, running_hash, subjects, wire FROM record ORDER BY position"
    ):
        middle = data.index(payer + running_hash + subjects + wire)
        end = middle + len(payer + running_hash + subjects + wire)
        found.append((int(position) & (1 << 40) - 1, range(middle - 8, end)))
    return found


@pytest.mark.parametrize("share", range(SHARES))
def test_every_flipped_bit_of_a_record_names_that_record(closed: Specimen, tell: Tell, share: int) -> None:
    """Every other record is damaged at once, at the same place, and each of them is named."""
    records = _records(closed)
    tried = 0
    for first in (0, 1):
        for place in range(share, max(len(run) for _, run in records), SHARES):
            for bit in bits_of(place):
                struck = [(sequence, run[place]) for sequence, run in records[first::2] if place < len(run)]
                with closed.flipped(DATABASE, [offset for _, offset in struck], bit):
                    faults = closed.report().faults
                named = {fault.sequence for fault in faults}
                assert {sequence for sequence, _ in struck} <= named, (place, bit, faults)
                tried += len(struck)
    tell(f"{tried:,} flipped bits of stored records, share {share + 1} of {SHARES}, each named by its record")


def _places(data: bytes, value: bytes) -> list[int]:
    """Where each byte of a long value stands: SQLite keeps what does not fit in a chain of pages."""
    start = data.index(value[:32])
    local = next(n for n, byte in enumerate(value) if data[start + n] != byte)
    # The number of the next page may begin like the value goes on.
    while True:
        page = (int.from_bytes(data[start + local : start + local + 4]) - 1) * PAGE
        if data[page + 4 : page + 20] == value[local : local + 16]:
            break
        local -= 1
    places = list(range(start, start + local))
    while len(places) < len(value):
        places += range(page + 4, page + 4 + min(PAGE - 4, len(value) - len(places)))
        page = (int.from_bytes(data[page : page + 4]) - 1) * PAGE
    assert bytes(data[place] for place in places) == value
    return places


def test_every_flipped_bit_of_a_tile_names_the_record_it_stands_for(tiled: Specimen, tell: Tell) -> None:
    data = tiled.bytes(DATABASE)
    tiles = [_places(data, tile) for (tile,) in rows(tiled, "SELECT hashes FROM tile ORDER BY number")]
    assert [len(places) for places in tiles] == [8192, 8192]
    for place in range(32):
        for bit in bits_of(place):
            with tiled.flipped(DATABASE, [offset for places in tiles for offset in places[place::32]], bit):
                faults = tiled.report().faults
            assert {one.sequence for one in faults if one.code == "tile_wrong"} == set(range(1, 513)), (place, bit)
    tell(f"{32 * BITS * 512:,} flipped bits of Merkle tiles, each named by the record it stands for")


# The database as a file.


def _holding(data: bytes) -> set[int]:
    """The bytes that hold a database together: its header, and for each page its header and where its cells are."""
    found = set(range(100))
    for page in range(0, len(data), PAGE):
        head = page + (100 if page == 0 else 0)
        if data[head] in (2, 5, 10, 13):
            size = 12 if data[head] in (2, 5) else 8
            found.update(range(head, head + size + 2 * int.from_bytes(data[head + 3 : head + 5])))
    return found


def _chosen(specimen: Specimen) -> list[int]:
    data = specimen.bytes(DATABASE)
    chosen = set(range(0, len(data), STRIDE)) | _holding(data)
    for (note,) in rows(specimen, "SELECT note FROM checkpoint"):
        place = data.index(note)
        chosen.update(range(place, place + len(note)))
    return sorted(chosen)


def _is_hash_beside(specimen: Specimen, offset: int) -> bool:
    """What no record tells: the second half of an API key's hash. With that changed, the key is refused."""
    place = specimen.bytes(DATABASE).index(b'"sha256":"' + b"0" * 64) + 10
    return place + 32 <= offset < place + 64


@pytest.mark.parametrize("share", range(SHARES))
def test_every_flipped_bit_of_the_database_is_named_or_has_changed_nothing(
    closed: Specimen, tell: Tell, share: int
) -> None:
    chosen = _chosen(closed)[share::SHARES]
    tried = unchanged = 0
    for number, offset in enumerate(chosen):
        for bit in bits_of(offset):
            with closed.flipped(DATABASE, [offset], bit):
                same = closed.unchanged
                # Some are looked at to the end, whatever is found before it.
                fault = _first(closed) if number % 31 == 0 else "" if same else closed.fault()
            assert fault or same or _is_hash_beside(closed, offset), f"byte {offset}, bit {bit}"
            tried, unchanged = tried + 1, unchanged + same
    tell(
        f"{tried:,} flipped bits of a database of {closed.size(DATABASE):,} bytes, share {share + 1} of {SHARES}: "
        f"{tried - unchanged:,} named, {unchanged:,} without effect"
    )


def test_flipped_bits_anywhere_in_a_larger_store_are_named_or_have_changed_nothing(tiled: Specimen) -> None:
    size, chance = tiled.size(DATABASE), random.Random(20260507)
    for _ in range(20_000 if LONG else 40):
        offset, bit = chance.randrange(size), chance.randrange(8)
        with tiled.flipped(DATABASE, [offset], bit):
            assert tiled.unchanged or tiled.fault() or _is_hash_beside(tiled, offset), f"byte {offset}, bit {bit}"


def _first(specimen: Specimen) -> str:
    return next(iter(specimen.report().errors), "")


@pytest.mark.parametrize("share", range(2))
def test_every_flipped_bit_of_the_log_is_named(died: Specimen, tell: Tell, share: int) -> None:
    """A log that is damaged ends early for SQLite: what is lost with it was signed for outside."""
    size = died.size(LOG)
    heads = [range(at, at + FRAME_HEADER) for at in range(LOG_HEADER, size, FRAME)]
    chosen = {*range(LOG_HEADER), *range(0, size, STRIDE), *(place for head in heads for place in head)}
    tried = 0
    for offset in sorted(chosen)[share::2]:
        for bit in bits_of(offset):
            with died.flipped(LOG, [offset], bit):
                assert died.fault_of_log() or died.unchanged, f"byte {offset}, bit {bit}"
            tried += 1
    tell(f"{tried:,} flipped bits of a log of {size:,} bytes, share {share + 1} of 2")


def test_every_flipped_bit_of_the_checkpoint_outside_is_named(closed: Specimen) -> None:
    name = "checkpoints/1.0.1001"
    for offset in range(closed.size(name)):
        for bit in bits_of(offset):
            with closed.flipped(name, [offset], bit):
                assert closed.fault(), f"byte {offset}, bit {bit}"


def test_flipped_bits_of_a_body_that_is_a_file_are_named(closed: Specimen) -> None:
    (path,) = (closed.directory / "content" / "1.0.1001").iterdir()
    name = str(path.relative_to(closed.directory))
    for offset in range(0, closed.size(name), 1 if LONG else 397):
        for bit in bits_of(offset):
            with closed.flipped(name, [offset], bit):
                assert closed.fault() == "content_wrong", f"byte {offset}, bit {bit}"


def test_flipped_bits_of_the_shared_index_of_the_log_change_nothing(died: Specimen) -> None:
    """SQLite makes it anew for the first who opens the database."""
    died.report()
    name = f"{DATABASE}-shm"
    for offset in range(0, died.size(name), 1 if LONG else 997):
        with died.flipped(name, [offset], offset % 8):
            assert died.unchanged
            assert not died.fault(), f"byte {offset}"


def test_every_flipped_bit_of_a_key_file_is_refused(folder: Path) -> None:
    directory = folder / "keys"
    (made,) = SignerKeys(directory, "redkey/log").signers()
    path = directory / "signer-0001.key"
    data = path.read_bytes()
    for offset in range(len(data) - 1):
        for bit in bits_of(offset):
            flipped = bytearray(data)
            flipped[offset] ^= 1 << bit
            path.write_bytes(flipped)
            with pytest.raises(KeyRefused):
                SignerKeys(directory, "redkey/log").signers()
    path.write_bytes(data)
    assert SignerKeys(directory, "redkey/log").signers()[0].verifier == made.verifier


# Truncation.


@pytest.mark.parametrize("which", ["closed", "tiled"])
def test_a_database_cut_at_any_page_is_named(which: str, request: pytest.FixtureRequest, tell: Tell) -> None:
    specimen: Specimen = request.getfixturevalue(which)
    size = specimen.size(DATABASE)
    step = 512 if LONG or which == "closed" else PAGE
    for end in range(0, size, step):
        with specimen.truncated(DATABASE, end):
            assert specimen.fault(), f"cut at {end}"
    tell(f"a database of {size:,} bytes cut at each of {size // step} places, named each time")


def test_a_log_cut_at_any_frame_is_named(died: Specimen, tell: Tell) -> None:
    size = died.size(LOG)
    ends = [0, *(at + more for at in range(LOG_HEADER, size, FRAME) for more in (0, 1, FRAME_HEADER, FRAME - 1))]
    for end in ends:
        with died.truncated(LOG, end):
            assert died.fault_of_log(), f"cut at {end}"
    tell(f"a log of {size // FRAME} frames cut at each of {len(ends)} places, named each time")


def test_a_side_file_cut_anywhere_is_named(closed: Specimen) -> None:
    (body,) = (closed.directory / "content" / "1.0.1001").iterdir()
    for path, step in ((closed.directory / "checkpoints" / "1.0.1001", 1), (body, 512)):
        name = str(path.relative_to(closed.directory))
        for end in range(0, closed.size(name), step):
            with closed.truncated(name, end):
                assert closed.fault() or _is_whole(closed.bytes(name)), f"{name} cut at {end}"


def _is_whole(data: bytes) -> bool:
    """A checkpoint of which only the witness's line was cut off: a crash may leave it so, and it says the same tree."""
    try:
        return len(open_checkpoint(data)[1].signatures) == 1
    except ProofRefused:
        return False


def test_a_log_that_is_gone_is_named(died: Specimen, folder: Path) -> None:
    copy = Specimen(Path(shutil.copytree(died.directory, folder / "without-log")))
    (copy.directory / LOG).unlink()
    assert copy.fault()
