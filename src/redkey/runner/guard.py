"""The guard: a small program between the runner and an agent's program, so that nothing of it outlives the runner.

    python -I -S guard.py CONTROL_FD GRACE_SECONDS ORPHAN_SECONDS AFTER PROGRAM [ARGUMENT...]

The runner holds the other end of the control pipe. A byte on it asks for a stop: SIGTERM to the process group, and
after the grace time SIGKILL to everything. Its end means that the runner is gone, however it died: the same, with
ORPHAN_SECONDS as the grace time, or SIGKILL at once where these are 0.
On Linux the guard adopts whatever the program leaves behind (PR_SET_CHILD_SUBREAPER), daemons of their own sessions
too, and the program dies with the guard (PR_SET_PDEATHSIG); elsewhere the process group has to do. The guard ends
with the program's exit code, 128 + n for signal n, once all of it is gone. AFTER is a command that is run then, its
words separated by U+001F, or nothing: what a program started through a daemon is ended by it.

It is run by itself, without RedKey and without site-packages, because it starts with every step.
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
    """In the child: a session of its own, plain signals, dead when the guard is, then the program."""
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(128 + signal.SIGKILL)
        os.close(control)
        # Only root has these: as any other user the calls do nothing.
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
    """False for a program that no folder of the PATH has. A folder that is closed to this user makes the system say
    "permission denied" of every program that is in no other."""
    return "/" in program or any(os.path.exists(f"{folder}/{program}") for folder in os.get_exec_path())  # noqa: PTH110


def _children() -> list[int]:
    """The living children of the guard, adopted ones too; none where /proc does not tell."""
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
    """Kill the program's group and everything it left behind; killing a parent may hand over more.

    Whoever is killed here is not buried yet, so its number cannot be another's.
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
    """The program's exit code once it has ended. It is left unburied, to keep its number; who was adopted is buried."""
    for pid in _children():
        if pid != program:
            os.waitpid(pid, os.WNOHANG)
    if not hasattr(os, "waitid"):
        # Older Pythons on macOS bury whom they ask for.
        pid, status = os.waitpid(program, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status)
        return None if pid == 0 else code if code >= 0 else 128 - code
    found = os.waitid(os.P_PID, program, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status


def _watch(program: int, control: int, wakeup: int, grace_seconds: float, orphan_seconds: float) -> int:
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
                # The runner is gone, so nothing more will come on the pipe.
                watched = [wakeup]
                grace_seconds = orphan_seconds
            deadline = min(deadline or math.inf, time.monotonic() + grace_seconds)
            try:
                os.kill(-program, signal.SIGTERM)
            except (ProcessLookupError, PermissionError):
                continue


def main() -> int:
    control, grace_seconds, orphan_seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    after, command = sys.argv[4], sys.argv[5:]
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
    # What the program writes to is its own: only its end may close it.
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = _watch(program, control, wakeup, grace_seconds, orphan_seconds)
    _kill_all(program)
    if after:
        _run_after(after.split("\x1f"))
    return code


def _run_after(command: list[str]) -> None:
    """Run a command to its end, for some seconds at most."""
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
