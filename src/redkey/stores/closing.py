"""What is open for the block of a `with` statement."""

from __future__ import annotations

from typing import Self


class Closing:
    """Something that is closed at the end of its block."""

    def close(self) -> None:
        """Close it; a second call does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
