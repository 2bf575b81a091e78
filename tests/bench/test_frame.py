"""`make bench` runs every bench module; the wire bench prints its figures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import __main__ as frame

ROOT = Path(__file__).resolve().parents[2]


def _bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


def test_the_wire_bench_prints_a_figure_for_everything_that_has_an_aim() -> None:
    result = _bench("--quick", "--only", "wire")
    assert result.returncode == 0, result.stderr
    rows = dict(re.findall(r"^  (.+?)  +([\d,]+)/s", result.stdout, re.MULTILINE))
    assert rows.keys() == {
        "orjson.loads alone, the yardstick",
        "validate, decoded",
        "validate, from bytes",
        "decode what is stored",
        "canonicalise",
        "reduce (task reducer)",
    }
    assert all(int(figure.replace(",", "")) > 100 for figure in rows.values())
    assert result.stdout.count("aim ") == 4


def test_every_bench_module_says_what_it_measures() -> None:
    measuring = "a2a budget bus coordination graphs growth ledger limits postgres proof queues wire workflows"
    assert list(frame.benches()) == measuring.split()
    for name, module in frame.benches().items():
        assert module.__doc__, name
        assert callable(module.main)


def test_an_unknown_bench_is_a_wrong_use() -> None:
    result = _bench("--only", "nothing")
    assert result.returncode == 2
    assert "wire" in result.stderr


def test_modules_are_run_in_order_and_told_to_be_quick(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[str, bool]] = []

    class Fake:
        def __init__(self, name: str) -> None:
            self.__doc__ = f"About {name}.\nMore."
            self.main = lambda quick: calls.append((name, quick))

    monkeypatch.setattr(frame, "benches", lambda: {name: Fake(name) for name in ("one", "two")})
    assert frame.main(["--quick"]) == 0
    assert frame.main(["--only", "two"]) == 0
    assert calls == [("one", True), ("two", True), *[("two", False)] * 3]
    assert "one: About one\n" in capsys.readouterr().out


def test_modules_take_turns_and_a_long_one_has_its_own_number_of_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Fake:
        def __init__(self, name: str) -> None:
            self.__doc__ = name
            self.main = lambda quick: calls.append(name)

    long = Fake("long")
    long.ROUNDS = 1  # type: ignore[attr-defined]
    monkeypatch.setattr(frame, "benches", lambda: {"long": long, "short": Fake("short")})
    assert frame.main(["--rounds", "2"]) == 0
    assert calls == ["long", "short", "short"]
