"""The context of one task: what a handler works from, and what it can say and make while it works."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from redkey.client.calls.claims import Claims
from redkey.client.flow import Steps
from redkey.client.operation import Async, Mode, Operation, Procedure, Resource, Sender, Sync
from redkey.client.request import Request
from redkey.client.resources.content import Content
from redkey.client.resources.tasks import Tasks
from redkey.client.worker.lease import Lease, LossSignal
from redkey.client.worker.progress import LatestReport, Report
from redkey.errors import CallMisused
from redkey.shapes.claims import (
    ArtifactAdded,
    Assignment,
    ClaimChanged,
    Claimed,
    ClaimSpending,
    ModelUsage,
    ProgressReported,
    Readiness,
)
from redkey.shapes.content import KeptContent
from redkey.shapes.tasks import Task, Upstream

# What is larger is put as content first; a request may have 1 MiB in all.
_INLINE_BYTES = 256 * 1024


class WorkContext(Resource[Mode]):
    """`task` is what is asked, `input` what it works from. In an async handler what calls the server is awaited."""

    def __init__(
        self, sender: Sender, claimed: Claimed, lease: Lease, stopping: threading.Event, latest: LatestReport
    ) -> None:
        super().__init__(sender)
        if claimed.task is None:
            raise CallMisused("claim with with_task=True: a hold needs the task", code="task_missing")
        self.task: Assignment = claimed.task
        self.claim_id, self.agent_id = claimed.claim_id, claimed.agent_id
        # True when the task is no longer this handler's to work on, or may not be; see `LossSignal`.
        self.lease_lost = LossSignal(lease)
        # Set when the worker was asked to stop: finish soon, or raise `Release`.
        self.stopping = stopping
        # The names of the artifacts that were made, ready ones only.
        self.made: set[str] = set()
        self._lease, self._latest = lease, latest

    @property
    def input(self) -> Any:
        """The input of the task; of a plan's task without its own, what the run was given."""
        return self.task.input if self.task.input is not None else self.task.workflow_input

    @property
    def answer(self) -> str:
        """What lifted the task's last block; empty when it was not blocked, or was lifted without an answer."""
        return self.task.answer

    @property
    def cancelled(self) -> bool:
        """Whether the hold ended because the task was cancelled."""
        return self._lease.end == "cancelled"

    def check(self) -> None:
        """Go on, or raise `WorkInterrupted`: call it where the work can be left. It needs no answer of the server."""
        self._lease.check()

    @Procedure
    def artifact(
        self,
        name: str,
        content: Any,
        *,
        media_type: str | None = None,
        readiness: Readiness | None = None,
        artifact_id: str | None = None,
        derived_from: Sequence[str] | None = None,
    ) -> Steps[ArtifactAdded]:
        """Record an output under a name: text, bytes, a file (`Path`), or anything that is JSON."""
        named: dict[str, Any] = {
            "media_type": media_type,
            "readiness": readiness,
            "artifact_id": artifact_id,
            "derived_from": derived_from,
        }
        data = content.encode() if isinstance(content, str) else content
        if isinstance(content, str) and media_type is None:
            named["media_type"] = "text/plain"
        if isinstance(data, Path) or (isinstance(data, bytes | bytearray) and len(data) > _INLINE_BYTES):
            kept: KeptContent = yield Content.put.build(None, data if isinstance(data, Path) else bytes(data))
            named["sha256"] = kept.sha256
        elif isinstance(content, bytes | bytearray):
            named["content_base64"] = b64encode(content).decode()
        else:
            named["content"] = content
        added: ArtifactAdded = yield Claims.add_artifact.build(None, self.claim_id, name, **named)
        if readiness != "draft":
            self.made.add(name)
        return added

    @Procedure
    def progress(self, text: str = "", percent: float | None = None) -> Steps[ProgressReported]:
        """Say how far the work has come, for those who watch the task: a sentence, a percentage, or both.

        Call it as often as you like: one report a second is sent, and the newest always is. `recorded` is False for
        one that waits for its second.
        """
        report = Report.of(text, percent)
        wait = self._latest.offer(report)
        if wait:
            return ProgressReported(
                task_id=self.task.task_id,
                claim_id=self.claim_id,
                recorded=False,
                reason="coalesced",
                retry_after_seconds=wait,
            )
        said: ProgressReported = yield Claims.report_progress.build(
            None, self.claim_id, report.text, percent=report.percent
        )
        if said.retry_after_seconds is not None:
            self._latest.put_back(report, said.retry_after_seconds)
        return said

    @Operation
    def view(self) -> Request[Task]:
        """The task as it is now."""
        return Tasks.get.build(None, self.task.task_id)

    @Operation
    def plan(self, plan: dict[str, Any] | Sequence[Any]) -> Request[ClaimChanged]:
        """Record the plan that the work follows."""
        return Claims.plan.build(None, self.claim_id, plan)

    @Operation
    def usage(self, used: Sequence[ModelUsage | Mapping[str, Any]]) -> Request[ClaimSpending]:
        """Report what model calls cost since the last report, and learn what the caps of the workspace leave.

        It counts also when the work fails, blocks or is given back. `Done(cost_usd=...)` is the whole of it: what was
        reported before is not counted twice.
        """
        return Claims.report_usage.build(None, self.claim_id, used)

    @Operation
    def read(self, name: str) -> Request[bytes]:
        """The bytes of an artifact that a task before this one made, by its name."""
        return Content.get.build(None, self.upstream(name).sha256)

    def upstream(self, name: str) -> Upstream:
        """What is known of an artifact that a task before this one made."""
        for one in self.task.upstream:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.task.upstream) or "none"
        raise CallMisused(f"no task before this one made {name!r}; there is: {known}", code="no_such_artifact")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.task.task_id}, {self.claim_id})"


Context: TypeAlias = WorkContext[Sync]
AsyncContext: TypeAlias = WorkContext[Async]
