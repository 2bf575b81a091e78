"""The guard: a small process between the runner and an agent's program; it ends the program when the runner ends.

    python -I -S guard.py CONTROL_FD GRACE_SECONDS ORPHAN_SECONDS FINISHES AFTER PROGRAM [ARGUMENT...]

The runner holds the other end of the control pipe. A byte on it requests a stop: SIGTERM to the process group, and
SIGKILL to everything after the grace time. When the pipe closes, the runner has died: the same happens, with
ORPHAN_SECONDS as the grace time, or SIGKILL at once if they are 0. If FINISHES is 1, no SIGTERM is sent: the program
may use the grace time to finish.
On Linux the guard adopts all orphans of the program (PR_SET_CHILD_SUBREAPER), including daemons in sessions of their
own, and the program dies with the guard (PR_SET_PDEATHSIG). Elsewhere only the process group is killed. When all
processes are gone, the guard exits with the program's exit code, or 128 + n for signal n. AFTER is an optional command
that runs then, its words separated by U+001F; it stops what the program started through a daemon, such as a container.

This file runs without RedKey and without site-packages, because a guard starts for every step.
"""

from __future__ import annotations

import errno
import math
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
# Linux lets a holder of any of these read the memory of every process: ptrace, sys_admin, perfmon.
_CAPABILITIES_TO_READ_MEMORY = (19, 21, 38)
_AFTER_SECONDS = 20.0
NOT_FOUND = 127
NOT_EXECUTABLE = 126


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _become(command: list[str], control: int, guard: int) -> None:
    """Run the program in the child: in its own session, with default signals, killed when the guard dies."""
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(128 + signal.SIGKILL)
        os.close(control)
        # Only root has these capabilities; for other users the calls do nothing.
        for capability in _CAPABILITIES_TO_READ_MEMORY:
            _prctl(_PR_CAPBSET_DROP, capability)
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606
    except OSError as cause:
        missing = isinstance(cause, FileNotFoundError) or not _is_there(command[0])
        sys.stderr.write(f"{command[0]}: {os.strerror(errno.ENOENT) if missing else cause.strerror}\n")
        sys.stderr.flush()
        os._exit(NOT_FOUND if missing else NOT_EXECUTABLE)
    finally:
        os._exit(NOT_EXECUTABLE)


def _is_there(program: str) -> bool:
    """Return whether a folder of the PATH has the program.

    If this user may not read one of the folders, exec reports "permission denied" for every missing program.
    """
    return "/" in program or any(os.path.exists(f"{folder}/{program}") for folder in os.get_exec_path())  # noqa: PTH110


def _children() -> list[int]:
    """Return the running children of the guard, including adopted ones; empty without /proc."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listed:  # noqa: PTH123
            return [int(pid) for pid in listed.read().split()]
    except OSError:
        return []


def _kill(pid: int) -> None:
    for target in (-pid, pid):
        try:
            os.kill(target, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def _kill_all(program: int) -> None:
    """Kill the program's group and all its orphans; killing a parent may produce new orphans.

    A process is reaped only after it was killed, so its pid cannot belong to another process yet.
    """
    _kill(program)
    while True:
        for pid in _children():
            _kill(pid)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _ended(program: int) -> int | None:
    """Return the program's exit code once it has ended. Reap orphans, but not the program, to reserve its pid."""
    for pid in _children():
        if pid != program:
            os.waitpid(pid, os.WNOHANG)
    if not hasattr(os, "waitid"):
        # Older Pythons on macOS have no waitid, and waitpid reaps the program.
        pid, status = os.waitpid(program, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status)
        return None if pid == 0 else code if code >= 0 else 128 - code
    found = os.waitid(os.P_PID, program, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status


def _watch(
    program: int, control: int, wakeup: int, grace_seconds: float, orphan_seconds: float, *, finishes: bool
) -> int:
    deadline: float | None = None
    watched = [control, wakeup]
    while True:
        code = _ended(program)
        if code is not None:
            return code
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = select.select(watched, [], [], left)[0]
        if wakeup in ready:
            os.read(wakeup, 4096)
        if deadline is not None and time.monotonic() >= deadline:
            return 128 + signal.SIGKILL
        if control in ready:
            if not os.read(control, 1):
                if not orphan_seconds:
                    return 128 + signal.SIGKILL
                # The runner has died: the pipe stays readable and would wake select forever.
                watched = [wakeup]
                grace_seconds = orphan_seconds
            deadline = min(deadline or math.inf, time.monotonic() + grace_seconds)
            if finishes:
                continue
            try:
                os.kill(-program, signal.SIGTERM)
            except (ProcessLookupError, PermissionError):
                continue


def main() -> int:
    """Start the program, watch it and the runner, and return the exit code."""
    control, grace_seconds, orphan_seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    finishes, after, command = sys.argv[4] == "1", sys.argv[5], sys.argv[6:]
    wakeup, woken = os.pipe()
    for end in (wakeup, woken):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guard = os.getpid()
    program = os.fork()
    if program == 0:
        _become(command, control, guard)
    # Close the guard's copies of the streams, so that readers see the end when the program ends.
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = _watch(program, control, wakeup, grace_seconds, orphan_seconds, finishes=finishes)
    _kill_all(program)
    if after:
        _run_after(after.split("\x1f"))
    return code


def _run_after(command: list[str]) -> None:
    """Run a command to its end, with a time limit."""
    try:
        pid = os.posix_spawnp(command[0], command, os.environ)
    except OSError:
        return
    deadline = time.monotonic() + _AFTER_SECONDS
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > deadline:
            _kill_all(pid)
            return
        time.sleep(0.05)


if __name__ == "__main__":
    os._exit(main())
