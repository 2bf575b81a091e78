"""The context of one task: what a handler reads, and what it can record while it works."""

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
from redkey.client.worker.log import WorkerLog
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

# Larger bodies are uploaded as content first; a request may have 1 MiB in total.
_INLINE_BYTES = 256 * 1024


class WorkContext(Resource[Mode]):
    """`task` is the task, `input` its input. In an async handler, await the methods that call the server."""

    def __init__(
        self,
        sender: Sender,
        claimed: Claimed,
        lease: Lease,
        stopping: threading.Event,
        latest: LatestReport,
        log: WorkerLog | None = None,
    ) -> None:
        super().__init__(sender)
        if claimed.task is None:
            raise CallMisused("claim with with_task=True: a hold needs the task", code="task_missing")
        self.task: Assignment = claimed.task
        self.claim_id, self.agent_id = claimed.claim_id, claimed.agent_id
        # True when another agent may have the task or the task was cancelled; see `LossSignal`.
        self.lease_lost = LossSignal(lease)
        # Set when the worker has to stop: finish soon, or raise `Release`.
        self.stopping = stopping
        # The names of the ready artifacts of the task.
        self.made: set[str] = set()
        # A logger of `logging`, whose records name the agent and the task.
        self.log = (log or WorkerLog(claimed.agent_id)).task(self.task, claimed.claim_id)
        self._lease, self._latest = lease, latest

    @property
    def input(self) -> Any:
        """The task's input; a plan's task without its own input has the input of the run."""
        return self.task.input if self.task.input is not None else self.task.workflow_input

    @property
    def answer(self) -> str:
        """The answer that lifted the task's last block; empty if there was no block, or no answer."""
        return self.task.answer

    @property
    def cancelled(self) -> bool:
        """Whether the hold ended because the task was cancelled."""
        return self._lease.end == "cancelled"

    def check(self) -> None:
        """Raise `WorkInterrupted` if the work should stop; call it at safe points. It does not call the server."""
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
        """Record an output under a name: text, bytes, a file (`Path`), or any JSON value."""
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
        """Report how far the work is, for people who watch the task: a sentence, a percentage, or both.

        Call it as often as you like: at most one report a second is sent, and the newest is always sent. `recorded` is
        False for a report that waits for its turn.
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
        reply: ProgressReported = yield Claims.report_progress.build(
            None, self.claim_id, report.text, percent=report.percent
        )
        if reply.retry_after_seconds is not None:
            self._latest.put_back(report, reply.retry_after_seconds)
        return reply

    @Operation
    def view(self) -> Request[Task]:
        """Return the current state of the task."""
        return Tasks.get.build(None, self.task.task_id)

    @Operation
    def plan(self, plan: dict[str, Any] | Sequence[Any]) -> Request[ClaimChanged]:
        """Record the plan that the work follows."""
        return Claims.plan.build(None, self.claim_id, plan)

    @Operation
    def usage(
        self, used: Sequence[ModelUsage | Mapping[str, Any]], *, reserve_usd: float | None = None
    ) -> Request[ClaimSpending]:
        """Report the cost of model calls since the last report; return what is left of the workspace's caps.

        With `reserve_usd`, the most that the next call may cost, `may_call` of the reply says whether it may begin.
        The cost counts even if the work fails, blocks or is released. `Done(cost_usd=...)` is the total: costs that
        were reported before are not counted twice.
        """
        return Claims.report_usage.build(None, self.claim_id, used, reserve_usd=reserve_usd)

    @Operation
    def read(self, name: str) -> Request[bytes]:
        """Return the bytes of an upstream task's artifact, by its name."""
        return Content.get.build(None, self.upstream(name).sha256)

    def upstream(self, name: str) -> Upstream:
        """Return the record of an upstream task's artifact."""
        for one in self.task.upstream:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.task.upstream) or "none"
        raise CallMisused(f"no upstream task has an artifact {name!r}; available: {known}", code="no_such_artifact")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.task.task_id}, {self.claim_id})"


Context: TypeAlias = WorkContext[Sync]
AsyncContext: TypeAlias = WorkContext[Async]
