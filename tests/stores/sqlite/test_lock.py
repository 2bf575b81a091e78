"""The writer lock: every wait for another process has an end, and nothing of a wait is left behind."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redkey.errors import StoreMisused, WriterBusy
from redkey.stores.sqlite import lock
from redkey.stores.sqlite.lock import LOCK_NAME, TURNSTILE_NAME, WriterLock
from tests.harness.acts import until

SHORT = 0.2


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "WAIT_SECONDS", SHORT)


@contextmanager
def taken(path: Path) -> Iterator[None]:
    """Hold a file lock as another process would."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _acquires(ours: WriterLock) -> bool:
    try:
        ours.acquire(wait=False)
    except WriterBusy:
        return False
    return True


@pytest.mark.parametrize("name", [LOCK_NAME, TURNSTILE_NAME])
def test_a_wait_for_another_process_ends_and_the_next_one_is_refused_at_once(tmp_path: Path, name: str) -> None:
    ours = WriterLock(tmp_path)
    with taken(tmp_path / name):
        with pytest.raises(WriterBusy):
            ours.acquire(wait=True)
        began = time.monotonic()
        for _ in range(100):
            with pytest.raises(WriterBusy):
                ours.acquire(wait=True)
        assert time.monotonic() - began < 100 * SHORT / 2
    # The thread gets the lock after all, for nobody: it gives it back.
    until(lambda: _acquires(ours))
    assert not is_free(tmp_path / LOCK_NAME)
    ours.release()
    assert is_free(tmp_path / LOCK_NAME)
    ours.close()


def test_who_waits_gets_the_lock_when_it_becomes_free(tmp_path: Path) -> None:
    ours = WriterLock(tmp_path)
    for _ in range(20):
        with taken(tmp_path / LOCK_NAME):
            waiting = threading.Thread(target=ours.hold, args=(30,))
            waiting.start()
            until(lambda: not is_free(tmp_path / TURNSTILE_NAME))
        waiting.join()
        assert not is_free(tmp_path / LOCK_NAME)
        ours.acquire(wait=False)
        ours.release()
        assert is_free(tmp_path / LOCK_NAME)
    ours.close()


def test_a_lock_is_closed_while_another_process_has_it(tmp_path: Path) -> None:
    ours = WriterLock(tmp_path)
    with taken(tmp_path / LOCK_NAME):
        with pytest.raises(WriterBusy):
            ours.hold()
        began = time.monotonic()
        ours.close()
        assert time.monotonic() - began < 5
        with pytest.raises(StoreMisused):
            ours.acquire(wait=True)
    # What the thread gets now, it gives back with the files.
    until(lambda: is_free(tmp_path / LOCK_NAME) and is_free(tmp_path / TURNSTILE_NAME))


def test_a_lock_given_back_by_another_thread_is_not_given_back_twice(tmp_path: Path) -> None:
    """A caller that only checked for the lock may release it; the unit that follows keeps its own."""
    ours = WriterLock(tmp_path)
    ours.hold()
    ours.hold(0.01)
    ours.release_held()
    ours.acquire(wait=False)
    ours.release_held()
    assert not is_free(tmp_path / LOCK_NAME)
    ours.release()
    assert is_free(tmp_path / LOCK_NAME)
    ours.close()
