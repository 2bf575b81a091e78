"""`python -m bench compare`: a commit and this checkout, measured in turns; nothing is left behind, even by Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench import compare
from bench.compare import AGAIN, BASE, ECHO, HEAD, PLAIN, Sample, show, summary

ROOT = Path(__file__).resolve().parents[2]
# A machine with other work took more than two minutes to unpack a tree and start the first server.
PATIENCE_SECONDS = 600.0
# What a server needs of a checkout.
NEEDED = ("src", "bench", "contracts", "definitions", "examples", "fixtures", "schemas")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of this user's own with one commit: the checkout may have none, or another owner's."""
    folder = tmp_path_factory.mktemp("repository")
    for name in NEEDED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.json.lock"))
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "bench: a base", "--no-gpg-sign"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


def _command(repository: Path, temporary: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command, with commits of that repository and temporary files in that folder."""
    temporary.mkdir()
    # Tests that run in the background may inherit an ignored SIGINT; the program must get it as from a terminal.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import pathlib, sys; "
    program += f"from bench import compare, trees; trees.ROOT = pathlib.Path({str(repository)!r})"
    program += f"; sys.exit(compare.run({list(arguments)!r}))"
    pipe, environment = subprocess.PIPE, {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=environment)


def _communicate(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it has printed when it ended; it does not outlive the test."""
    try:
        return process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()


def _processes_of(folder: Path) -> list[str]:
    """The command lines that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        found += [line] if str(folder) in line and "trees.ROOT" not in line else []
    return found


def test_every_case_is_measured_at_the_base_twice_and_at_the_head(repository: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    ended = _command(repository, temporary, "--base", "HEAD", "--rounds", "1", "--seconds", "0.1", "--json")
    output, errors = _communicate(ended)
    assert ended.returncode == 0, errors
    report: dict[str, Any] = json.loads(output)
    *cases, echo = report["samples"]
    assert cases == [
        "1 connection",
        "8 connections",
        "32 connections",
        "batches of 50, 8 connections",
        "rk.worker, 8 slots",
    ]
    assert (echo, set(report["samples"][echo])) == (ECHO, {BASE, AGAIN, HEAD, PLAIN})
    for case in cases:
        assert set(report["samples"][case]) == {BASE, AGAIN, HEAD}
        for (sample,) in report["samples"][case].values():
            parts = {name: sample[name] for name in ("unit", "answering", "outside", "threads")}
            assert sample["cpu"] == pytest.approx(sum(parts.values()))
            assert sample["beyond"] == pytest.approx(parts["answering"] + parts["outside"])
            assert all(parts[name] > 0 for name in ("unit", "answering", "outside")), parts
            assert sample["rate"] > 0
    measured = {(entry["case"], entry["measure"]) for entry in report["summary"]}
    assert ("32 connections", "outside") in measured
    assert ("32 connections", "p99") in measured
    assert report["fsync_ms"][0] > 0
    assert "32 connections" in show(report)
    assert not list(temporary.iterdir())
    assert not _processes_of(temporary)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_leaves_nothing_behind(repository: Path, tmp_path: Path, number: int) -> None:
    temporary = tmp_path / "temporary"
    process = _command(repository, temporary, "--base", "HEAD", "--rounds", "100")
    end = time.monotonic() + PATIENCE_SECONDS
    while not list(temporary.glob("redkey-bench-*/base/server.ready")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no server has started"
        time.sleep(0.01)
    assert _processes_of(temporary)
    process.send_signal(number)
    _, errors = _communicate(process)
    assert process.returncode == 130, errors
    assert "Stopped" in errors
    assert not list(temporary.iterdir())
    assert not _processes_of(temporary)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--base", "no-such-commit"], "There is no commit 'no-such-commit'"),
        (["--base", "HEAD", "--head", "no-such-commit"], "There is no commit 'no-such-commit'"),
        (["--base", "HEAD", "--rounds", "0"], "--rounds and --seconds must be positive"),
        (["--base", "HEAD", "--seconds", "-1"], "--rounds and --seconds must be positive"),
        ([], "--base"),
    ],
)
def test_a_wrong_use_is_answered_at_once(
    repository: Path,
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("bench.trees.ROOT", repository)
    with pytest.raises(SystemExit) as ended:
        compare.run(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_ratio_is_taken_within_a_round_and_the_median_of_rounds_counts() -> None:
    def samples(*rates: float) -> list[Sample]:
        return [Sample(rate, 100, 50, 50, 10, 40, 0, 90, 1.0, 2.0, 9.0) for rate in rates]

    found = summary(
        {"8 connections": {BASE: samples(100, 200, 50), AGAIN: samples(100, 180, 55), HEAD: samples(200, 200, 75)}}
    )
    rate = next(entry for entry in found if entry["measure"] == "rate")
    assert rate["ratios"] == [2, 1, 1.5]
    assert rate["ratio"] == 1.5
    assert rate["a_a"] == [1, 0.9, 1.1]
    # Nothing over nothing is no ratio.
    threads = next(entry for entry in found if entry["measure"] == "threads")
    assert (threads["ratios"], threads["ratio"]) == ([], None)
