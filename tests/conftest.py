"""What all tests share: how hypothesis runs."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: the first example of a test may compile schemas, and machines are shared. No database: tests
# leave nothing behind in the checkout.
settings.register_profile(
    "redkey", deadline=None, database=None, max_examples=2000 if os.environ.get("REDKEY_TEST_LONG") == "1" else 100
)
settings.load_profile("redkey")
