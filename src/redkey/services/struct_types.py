"""The types of all structs, built before there are threads.

msgspec builds its data on a struct when the struct is first decoded. If another thread decodes the same struct
meanwhile, it sees incomplete data, and the process ends with a segmentation fault. So a server builds all of them at
its start, in one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def build_struct_types() -> None:
    """Build the type of every struct that is defined so far."""
    for kind in _below(msgspec.Struct):
        # A struct with a type variable, or one that is never decoded and has a field that cannot be.
        with suppress(TypeError, NameError):
            msgspec.json.Decoder(kind)


def _below(kind: type) -> Iterator[type]:
    below: list[type] = type.__subclasses__(kind)
    for one in below:
        yield one
        yield from _below(one)
