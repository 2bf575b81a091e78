"""Without the extra nothing of A2A's packages is imported, and what needs none of them works."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("a2a", "grpc", "google.protobuf", "starlette", "sse_starlette")


@pytest.mark.parametrize("module", ["redkey", "redkey.client", "redkey.app", "redkey.serving", "redkey.a2a.door"])
def test_importing_brings_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([one for one in {HEAVY!r} if one in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
