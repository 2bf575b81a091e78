"""Files that agents write themselves become artifacts, and what is kept of attempts that fail."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from redkey.cli import main
from redkey.errors import OutputRefused
from redkey.runner import files
from redkey.runner.files import changed, describe, reconcile, snapshot
from redkey.runner.logs import LoggedEnd, Logs
from redkey.wire.step import StepArtifact
from tests.harness.samples import brief_asking
from tests.harness.scene import Scene, output


def test_what_is_new_or_changed_is_found_and_nothing_else(tmp_path: Path) -> None:
    for name in ("kept.txt", "changed.txt", "gone.txt"):
        (tmp_path / name).write_text("1")
    before = snapshot(tmp_path)
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "changed.txt").write_text("2")
    # Many file systems count time in steps of milliseconds: an agent takes longer, a test does not.
    os.utime(tmp_path / "changed.txt", ns=(0, before["changed.txt"][1] + 1_000_000))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "new.bin").write_bytes(b"\xff")
    for hidden in (".cache", "node_modules", "deep/__pycache__"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "x").write_text("x")
    (tmp_path / ".env").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert changed(tmp_path, before) == ["changed.txt", "deep/er/new.bin"]


def test_declared_artifacts_and_files_are_reconciled(tmp_path: Path) -> None:
    (tmp_path / "same.md").write_text("text\n")
    (tmp_path / "empty.md").write_text("long text")
    declared = [
        StepArtifact("same.md", "create", "text"),
        StepArtifact("./empty.md", "create", ""),
        StepArtifact("other.md", "create", "x"),
    ]
    found = reconcile(tmp_path, declared, ["same.md", "empty.md"], ["same.md", "empty.md", "more.md"])
    assert [one.path for one in found.to_write] == ["other.md"]
    assert found.files == ("same.md", "empty.md", "more.md")
    with pytest.raises(OutputRefused) as refused:
        reconcile(tmp_path, [StepArtifact("same.md", "create", "other text")], ["same.md"], [])
    assert refused.value.code == "artifact_differs"
    with pytest.raises(OutputRefused) as refused:
        reconcile(tmp_path, [], [], [f"{number}" for number in range(300)])
    assert refused.value.code == "too_many_files"


def test_a_file_that_is_too_large_is_refused_before_it_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "huge").open("wb") as out:
        out.truncate(2 * 1024 * 1024 * 1024)
    monkeypatch.setattr(files, "LARGEST_BYTES", 8 * 1024 * 1024)
    with pytest.raises(OutputRefused) as refused:
        describe(tmp_path, "huge")
    assert refused.value.code == "artifact_too_large"


def test_files_become_artifacts_binary_ones_too(stage: Scene) -> None:
    script = f"printf '\\377\\000\\001' > picture.png; mkdir -p out; echo text > out/notes.md; echo '{output()}'"
    stage.run("--exec", stage.script("agent.sh", script))
    task = stage.ends(stage.task(outputs=["picture"]), "completed")
    found = {one.name: one for one in task.artifacts}
    assert set(found) == {"picture", "notes.md"}
    assert stage.rk.content.get(found["picture"].sha256) == b"\xff\x00\x01"
    assert found["picture"].media_type == "image/png"


def test_an_agent_that_writes_and_declares_a_file_is_understood(stage: Scene) -> None:
    """Today's way of coding agents: the file is written, and stands in the envelope again."""
    declared = {"path": "report.md", "operation": "create", "content": "By example.com."}
    script = f"echo 'By example.com.' > report.md; echo '{output(artifacts=[declared])}'"
    stage.run("--exec", stage.script("agent.sh", script))
    brief = brief_asking(type="file", output_ref_required=True)
    task = stage.ends(stage.task(brief=brief), "completed")
    assert [one.name for one in task.artifacts] == ["report.md"]


def test_logs_of_a_failed_attempt_are_found_again(stage: Scene) -> None:
    script = "echo thinking; echo complaint >&2; echo draft > draft.md; echo '[9]' > $REDKEY_OUTPUT_FILE; exit 3"
    runner = stage.run("--exec", stage.script("agent.sh", script))
    task_id = stage.ends(stage.task(), "failed").task_id
    stage.until_told(runner, "failed")
    work = str(stage.directory / "work-quinn")
    shown = CliRunner().invoke(main, ["task", "logs", task_id, "--work", work])
    assert shown.exit_code == 0, shown.output
    for words in ("failed", "exit code 3", "thinking", "complaint", "draft.md"):
        assert words in shown.output
    (told,) = [json.loads(line) for line in CliRunner().invoke(
        main, ["task", "logs", task_id, "--work", work, "--json"]).stdout.splitlines()]  # fmt: skip
    folder = Path(told["directory"])
    # The envelope that was refused can be looked at.
    assert (folder / "try-1" / "output.json").read_text() == "[9]\n"
    assert (folder / "files" / "draft.md").read_text() == "draft\n"
    assert (folder / "try-1" / "prompt.md").read_text().startswith("You are Quinn")
    assert json.loads((folder / "try-1" / "input.json").read_text())["task"]["action"] == "execute"
    none = CliRunner().invoke(main, ["task", "logs", "task_1", "--work", work])
    assert (none.exit_code, "no logs of task_1" in none.output) == (1, True)


def test_an_attempt_that_succeeds_leaves_nothing(stage: Scene) -> None:
    stage.run("--exec", stage.script("agent.sh", f"echo x > x.txt; echo '{output()}'"))
    stage.ends(stage.task(), "completed")
    logs = stage.directory / "work-quinn" / "logs"
    assert not logs.exists() or list(logs.iterdir()) == []


def test_old_logs_are_removed(tmp_path: Path) -> None:
    logs = Logs(tmp_path, keep_days=1)
    for number in range(3):
        log = logs.open(f"task_{number}", 1, "clm_12345678")
        assert log.begin_try(1, "prompt", b"{}") is not None
        log.keep(LoggedEnd(f"task_{number}", "ada", 1, "clm", "failed", "no", "now"))
    old = tmp_path / "logs" / "task_1" / "1-12345678" / "end.json"
    os.utime(old, (time.time() - 90_000,) * 2)
    assert logs.sweep() == 1
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["task_0", "task_2"]
    assert [end.task_id for end, _ in logs.of("task_2")] == ["task_2"]
    assert list(logs.of("../task_2")) != []
