"""One target under atheris, in a process of its own: libFuzzer ends the process when it is done."""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import atheris

from fuzz.mutation import mutated_message
from fuzz.targets import Judge, Target, all_targets


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods that a module defines; compiled kernels are none."""
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield value
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            for member in vars(value).values():
                inner = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                inner = inner.fget if isinstance(inner, property) else inner
                if isinstance(inner, FunctionType):
                    yield inner


def fuzz(target: Target, judge: Judge, arguments: list[str]) -> None:
    """Fuzz until the arguments say that it is enough; does not return."""
    for name in target.modules:
        for function in functions_of(importlib.import_module(name)):
            if "__wrapped__" not in vars(function):
                atheris.instrument_func(function)
    more: dict[str, Any] = {"custom_mutator": _mutate} if target.message else {}
    atheris.Setup([sys.argv[0], *arguments], judge, **more)
    atheris.Fuzz()


def _mutate(content: bytes, largest: int, seed: int) -> bytes:
    found = mutated_message(content, seed) if seed % 4 else None
    return found if found is not None and len(found) <= largest else bytes(atheris.Mutate(content, largest))


def main() -> None:
    """NAME FOLDER ARGUMENT...: a target, a folder to write in, and libFuzzer's arguments."""
    name, folder, *arguments = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    target = all_targets()[name]
    fuzz(target, target.make(Path(folder)), arguments)


if __name__ == "__main__":
    main()
