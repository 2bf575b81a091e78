"""What the crash proofs share: strace or a word that it is missing, a folder in memory, recorded runs, a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.crash import tracing
from tests.crash.judge import Judge
from tests.crash.recording import History, memory_folder, record_run


@pytest.fixture(scope="session")
def strace() -> None:
    """For proofs that need strace; where it is missing, the end of the test run lists them."""
    if not tracing.available():
        pytest.skip("strace is not installed, or may not trace here")


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder in memory."""
    with TemporaryDirectory(prefix="redkey-crash-", dir=memory_folder()) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def judge() -> Judge:
    return Judge()


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Says at the end of the test run how much was proven."""
    return lambda text: record_property("proven", text)


@pytest.fixture
def count(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Says at the end of the test run how many of something all tests together have tried."""
    return lambda what, number: record_property(f"total {what}", number)


@pytest.fixture(scope="session")
def recorded(strace: None) -> History:
    """The whole script, undisturbed."""
    return record_run()
