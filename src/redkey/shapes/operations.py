"""Every operation of RedKey, collected from the modules of this package."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

import redkey.shapes
from redkey.shapes.operation import Operation


@cache
def modules() -> tuple[ModuleType, ...]:
    """The modules of this package, by name."""
    return tuple(
        import_module(f"{redkey.shapes.__name__}.{module.name}")
        for module in pkgutil.iter_modules(redkey.shapes.__path__)
    )


@cache
def operations() -> tuple[Operation, ...]:
    """All operations: module by module, in the order of their definition."""
    return tuple(operation for module in modules() for operation in declared_in(module))


def declared_in(module: ModuleType) -> Iterator[Operation]:
    """The operations that a module declares."""
    return (value for value in vars(module).values() if isinstance(value, Operation))
