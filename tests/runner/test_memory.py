"""Memories, in a file and in PostgreSQL: recalled by nearness; how well, with the real model and by words alone."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy
import pytest

from redkey.errors import MemoryRefused
from redkey.runner.memory import minilm
from redkey.runner.memory.port import Memories, Owner
from redkey.runner.memory.postgres import PostgresMemories
from redkey.runner.memory.sqlite import SqliteMemories
from tests.harness.postgres import database

QUINN = Owner("ws_1", "quinn")
Make = Callable[..., Memories]

# What an agent might have remembered, and how it might ask for it weeks later, in other words.
FACTS = {
    "The staging database is restored from a nightly dump at 02:00 UTC.": "when does the test environment get new data",
    "Customers in Norway pay no VAT when the invoice goes to a company.": "tax rules for Scandinavian business clients",
    "The login page must lock an account after five wrong passwords.": "how many failed sign-in attempts are allowed",
    "Images above two megabytes are shrunk before they are uploaded.": "large pictures and their size limit",
    "The mobile team releases every second Thursday.": "schedule for shipping the phone app",
    "Vikram wants findings numbered and sorted by severity.": "how the reviewer likes his remarks",
    "Feature branches are called feature/ and the ticket's number.": "naming convention in git",
    "The search index is rebuilt when a product's price changes.": "what triggers reindexing of the catalogue",
    "Emails to customers are sent by the notification service, never directly.": "how do we mail our users",
    "Integration tests need Docker and take eleven minutes.": "running the slow test suite",
    "The payment provider times out after thirty seconds.": "why do card transactions hang",
    "Log lines must not contain personal data.": "privacy rules for what we print",
    "The French translation lives in its own repository.": "where to find localised texts",
    "Background jobs are retried three times with growing pauses.": "what happens when an asynchronous task fails",
}
NOISE = [f"Ticket {number} was closed without a change on day {number % 28}." for number in range(10)]


class Letters:
    """An embedder whose vectors count letters: texts with the same letters are near."""

    name = "letters"
    floor = 0.9

    def embed(self, texts: list[str]) -> numpy.ndarray:
        counts = numpy.array([[1e-6 + text.lower().count(chr(97 + n)) for n in range(26)] for text in texts])
        return (counts / numpy.linalg.norm(counts, axis=1, keepdims=True)).astype(numpy.float32)


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Open memories of one kind, the same ones with each call."""
    opened: list[SqliteMemories | PostgresMemories] = []

    def open_one(*arguments: object, **options: object) -> Memories:
        kind = SqliteMemories if request.param == "sqlite" else PostgresMemories
        opened.append(kind(place, *arguments, **options))  # type: ignore[arg-type]
        return opened[-1]

    if request.param == "sqlite":
        place: object = tmp_path / "m.sqlite"
        yield open_one
    else:
        with database() as place:
            yield open_one
            for memories in opened:
                memories.close()
            opened.clear()
    for memories in opened:
        memories.close()


def _filled(path: Path, embedder: minilm.MiniLm | None = None) -> SqliteMemories:
    memories = SqliteMemories(path, embedder)
    for text in [*FACTS, *NOISE]:
        memories.remember(QUINN, text)
    return memories


def _found_first(memories: SqliteMemories) -> int:
    return sum(memories.recall(QUINN, question, 1)[0].text == fact for fact, question in FACTS.items())


def test_words_recall_what_shares_words_best_first(make: Make) -> None:
    memories = make()
    memories.remember(QUINN, "Deploying needs a tag.", task_id="task_1", written_at="2026-01-01T00:00:00Z")
    memories.remember(QUINN, "Deployments of the shop are deployed by Atlas.")
    memories.remember(QUINN, "Lunch is at noon.")
    found = memories.recall(QUINN, "How do I deploy the shop?")
    assert [one.text for one in found] == ["Deployments of the shop are deployed by Atlas.", "Deploying needs a tag."]
    assert (found[1].task_id, found[1].written_at) == ("task_1", "2026-01-01T00:00:00Z")
    assert found[0].written_at > "2026-11"


@pytest.mark.parametrize("embedder", [None, Letters()], ids=["words", "vectors"])
def test_an_agent_recalls_only_its_own_memories_of_its_workspace(embedder: Letters | None, make: Make) -> None:
    memories = make(embedder)
    memories.remember(QUINN, "The door code is on the fridge.")
    assert memories.recall(QUINN, "the door code is on the fridge")
    for other in (Owner("ws_1", "mindy"), Owner("ws_2", "quinn")):
        assert memories.recall(other, "the door code is on the fridge") == []


def test_what_shares_only_common_words_is_not_relevant(make: Make) -> None:
    memories = make()
    memories.remember(QUINN, "The door code is on the fridge.")
    assert memories.recall(QUINN, "What is the weather like on the coast?") == []


def test_a_memory_below_the_floor_is_not_recalled(make: Make) -> None:
    memories = make(Letters())
    for text in ("stone", "notes", "kiwi"):
        memories.remember(QUINN, text)
    assert {one.text for one in memories.recall(QUINN, "onset")} == {"stone", "notes"}
    assert len(make(Letters(), floor=0.0).recall(QUINN, "onset")) == 3
    assert make(Letters(), floor=0.9).recall(QUINN, "jazz") == []


def test_the_nearest_comes_first_and_what_had_no_vector_gets_one(make: Make) -> None:
    for text in ("stone stones", "stone", "kiwi"):
        make().remember(QUINN, text)
    found = make(Letters(), floor=0.2).recall(QUINN, "onset", 2)
    assert [one.text for one in found] == ["stone", "stone stones"]


@pytest.mark.parametrize("embedder", [None, Letters()], ids=["words", "vectors"])
def test_no_question_is_an_operator_of_the_query(embedder: Letters | None, make: Make) -> None:
    memories = make(embedder)
    memories.remember(QUINN, "The door code is on the fridge.")
    for about in (
        "",
        "!!!",
        '" OR 1',
        "NEAR(a b)",
        "text:door*",
        "' | 'x",
        "a & !b",
        "\0",
        "\ud800",
        "a" * 9000,
        "x " * 9000,
    ):
        assert len(memories.recall(QUINN, about)) <= 1


def test_every_text_is_stored_as_far_as_a_database_can(make: Make) -> None:
    memories = make()
    memories.remember(QUINN, "nul \0 and surrogate \ud800 number")
    memories.remember(QUINN, "number " + "é" * 20_000)
    assert sorted(len(one.text) for one in memories.recall(QUINN, "number")) == [28, 8000]
    with pytest.raises(MemoryRefused) as refused:
        memories.remember(QUINN, " \0 ")
    assert refused.value.code == "memory_empty"


def test_the_same_words_are_one_memory_and_the_oldest_are_forgotten(make: Make) -> None:
    memories = make(keep=2)
    for number, text in enumerate(["alpha one", "alpha two", "alpha one", "alpha three"]):
        memories.remember(QUINN, text, written_at=f"2026-01-0{number + 1}T00:00:00Z")
    assert {one.text for one in memories.recall(QUINN, "alpha")} == {"alpha one", "alpha three"}


def test_memories_are_there_for_the_next_process_and_for_many_threads(tmp_path: Path) -> None:
    first, second = SqliteMemories(tmp_path / "m.sqlite"), SqliteMemories(tmp_path / "m.sqlite")
    threads = [
        threading.Thread(target=memories.remember, args=(QUINN, f"number {number} {id(memories)}"))
        for number in range(20)
        for memories in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first.close()
    second.close()
    assert len(SqliteMemories(tmp_path / "m.sqlite").recall(QUINN, "number", 100)) == 40


def test_nothing_and_no_database_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MemoryRefused) as refused:
        SqliteMemories(tmp_path / "m.sqlite").remember(QUINN, "  ")
    assert refused.value.code == "memory_empty"
    (tmp_path / "no.sqlite").write_text("this is no database at all, and long enough to be sure of it")
    with pytest.raises(MemoryRefused):
        SqliteMemories(tmp_path / "no.sqlite")


def test_missing_weights_are_told_with_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(MemoryRefused, match="cannot be read"):
        minilm.MiniLm(tmp_path)


needs_model = pytest.mark.skipif(not minilm.available(), reason="the MiniLM extra is not installed")


class Cached(minilm.MiniLm):
    """The real model, asked once for each text: it takes a processor a while."""

    def __init__(self) -> None:
        super().__init__()
        self._vectors: dict[str, numpy.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> numpy.ndarray:
        if missing := [text for text in texts if text not in self._vectors]:
            self._vectors.update(zip(missing, super().embed(missing), strict=True))
        return numpy.stack([self._vectors[text] for text in texts])


@pytest.fixture(scope="module")
def model() -> minilm.MiniLm:
    found = Cached()
    found.embed([*FACTS, *FACTS.values(), *NOISE])
    return found


@needs_model
def test_the_model_tells_paraphrases_from_other_sentences(model: minilm.MiniLm) -> None:
    a, b, c = model.embed(["A man is playing a guitar.", "Someone plays an instrument.", "The stock fell by 3%."])
    assert a.shape == (384,)
    assert abs(float(a @ a) - 1) < 1e-5
    assert float(a @ b) > 0.5 > 0.2 > float(a @ c)


@needs_model
def test_padding_changes_no_vector() -> None:
    model = minilm.MiniLm()
    alone = model.embed(["Short."])[0]
    together = model.embed(["Short.", "A much longer sentence that makes the short one be padded a lot."])[0]
    assert abs(alone - together).max() < 1e-5


@needs_model
def test_recall_with_the_real_model_finds_what_words_alone_do_not(
    model: minilm.MiniLm, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    by_meaning = _found_first(_filled(tmp_path / "vectors.sqlite", model))
    words = _filled(tmp_path / "words.sqlite")
    by_words = sum(
        bool(found := words.recall(QUINN, question, 1)) and found[0].text == fact for fact, question in FACTS.items()
    )
    record_property("proven", f"memory recall, first of {len(FACTS)}: {by_meaning} by MiniLM, {by_words} by words")
    assert by_meaning >= 12
    assert by_meaning > by_words >= 1


@needs_model
def test_what_was_remembered_without_the_model_gets_its_vector_later(model: minilm.MiniLm, tmp_path: Path) -> None:
    SqliteMemories(tmp_path / "m.sqlite").remember(QUINN, "The mobile team releases every second Thursday.")
    with_model = SqliteMemories(tmp_path / "m.sqlite", model)
    assert with_model.recall(QUINN, "schedule for shipping the phone app")[0].text.startswith("The mobile team")
    with sqlite3.connect(tmp_path / "m.sqlite") as db:
        assert db.execute("SELECT embedder, length(vector) FROM memories").fetchall() == [(model.name, 4 * 384)]
    db.close()


@needs_model
def test_the_real_model_recalls_every_fact_above_its_floor(
    make: Make, model: minilm.MiniLm, record_property: pytest.RecordProperty
) -> None:
    memories = make(model)
    for text in [*FACTS, *NOISE]:
        memories.remember(QUINN, text)
    found = {fact: [one.text for one in memories.recall(QUINN, question, 24)] for fact, question in FACTS.items()}
    first = sum(texts[:1] == [fact] for fact, texts in found.items())
    recalled = sum(len(texts) for texts in found.values())
    record_property("proven", f"memory floor: {first} of {len(FACTS)} first, {recalled} of {24 * len(FACTS)} recalled")
    assert first >= 12
    assert all(fact in texts for fact, texts in found.items())
    assert recalled < 0.25 * 24 * len(FACTS)
