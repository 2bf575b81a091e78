"""Words, sentences and commands are recognised by the rules in the module's docstring."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.wire.prose import commands, sentences, words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # Rule 1: marks need white space or the end behind them.
        ("The page is up.", 1),
        ("The page is up", 1),
        ("The page is up. The tests pass.", 2),
        ("Is it up? It is! Good.", 3),
        ("Version v1.2 of output_ref.json is stored.", 1),
        ("It is written to output_ref.", 1),
        ("Tests pass. output_ref is written.", 2),
        ("See https://example.com/a.b?c=d. Then stop.", 2),
        ("The price is 3.50 and not 4.", 1),
        ("页面完成。测试通过。", 2),
        # Rule 2: blank lines and list items.
        ("One thing\n\nAnother thing", 2),
        ("One line\nthat goes on", 1),
        ("- first item\n- second item", 2),
        ("Steps:\n1. Read it\n2. Write it", 3),
        # Rule 3: abbreviations that never stand last, numbers, initials.
        ("Use a queue, e.g. Redis, for it.", 1),
        ("Use a queue (e.g. Redis) for it.", 1),
        ("One queue, i.e. Redis. It is small.", 2),
        ("Dr. Who and Mr. Smith met J. R. Doe.", 1),
        ("See no. 5 and fig. 2 of it.", 1),
        ("The answer is no. Then stop.", 2),
        ("It took 30 ms. Then it stopped.", 2),
        # Rule 4: what may go on with a lower-case letter.
        ("Logs, traces, etc. are kept.", 1),
        ("Logs, traces, etc. They are kept.", 2),
        ("The U.S. office is open.", 1),
        ("Wait... then go.", 1),
        ("Wait... Then go.", 2),
        ("It waits … and goes.", 1),
        ('The button says "Done." when it is.', 1),
        ('The button says "Done." Then it closes.', 2),
        ("It works (mostly!) and is fast.", 1),
        # Rule 5: no letter, no sentence.
        ("", 0),
        ("...", 0),
        ("42. !", 0),
        ("1. The page is up.", 1),
        # Rule 6: code is one word.
        ("The call `a. b. C` is made.", 1),
    ],
)
def test_sentences_are_counted_by_the_rule(text: str, count: int) -> None:
    assert sentences(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("one", 1),
        ("  two\twords\n", 2),
        ("a — dash is no word", 5),
        ("re-use counts as one: v1.2", 5),
        ("42 things", 2),
    ],
)
def test_words_are_runs_that_hold_a_letter_or_a_digit(text: str, count: int) -> None:
    assert words(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "Build the login page.",
        "build it",
        "Please carefully build the page.",
        "Implement rate limiting for each address.",
        "Don't break the tests.",
        "Don’t break the tests.",
        "Make sure that it works.",
        "You must add a test.",
        "“Write” the report.",
        "- Fix the bug that is in the parser.",
        "Review pull requests",
        "Then update every page that is stale.",
        "Never delete a file.",
    ],
)
def test_a_command_is_recognised(text: str) -> None:
    assert commands(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "The login page is built.",
        "One sentence: what must be true when this task is done.",
        "Build time is under a minute.",
        "Test coverage of the parser is above 90 %.",
        "Report pages exist for all clients.",
        "Update",
        "Users can reset their password.",
        "You are here.",
        "Every address is limited to ten attempts.",
        "Only administrators see the page.",
    ],
)
def test_a_statement_is_no_command(text: str) -> None:
    assert not commands(text)


@given(st.text(max_size=300))
def test_any_text_can_be_counted(text: str) -> None:
    assert 0 <= sentences(text) <= len(text)
    assert 0 <= words(text) <= len(text)
    assert commands(text) in (True, False)


@given(st.lists(st.sampled_from(["The page is up.", "It works!", "Is it so?"]), max_size=8))
def test_plain_sentences_add_up(parts: list[str]) -> None:
    assert sentences(" ".join(parts)) == len(parts)
