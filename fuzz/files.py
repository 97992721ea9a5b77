"""Targets that read files: the fuzzer's bytes become a file, or one of several files of a folder that is valid else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fedkge.base.errors import FedkgeError
from fedkge.base.private_files import new_file
from fuzz.targets import Judge, Target

Read = Callable[[Path], object]
Files = Mapping[str, bytes]


def file_target(name: str, read: Read, seeds: Sequence[bytes], modules: Sequence[str]) -> Target:
    """One file of this name, read by `read`."""

    def make(folder: Path) -> Judge:
        path = folder / name

        def judge(content: bytes) -> None:
            new_file(path)
            path.write_bytes(content)
            with suppress(FedkgeError):
                read(path)

        return judge

    return Target(make, lambda _: seeds, tuple(modules))


def folder_target(files: Callable[[Path], Files], read: Read, modules: Sequence[str]) -> Target:
    """A folder of files: the first byte says which of them the rest replaces.

    `files` gives the content of the valid folder; it may write others of its own beside.
    """

    def make(folder: Path) -> Judge:
        valid = files(folder / "valid")
        names = sorted(valid)
        for name, content in valid.items():
            new_file(folder / "valid" / name)
            (folder / "valid" / name).write_bytes(content)

        def judge(content: bytes) -> None:
            name = names[content[0] % len(names)] if content else names[0]
            path = folder / "valid" / name
            path.write_bytes(content[1:])
            try:
                with suppress(FedkgeError):
                    read(folder / "valid")
            finally:
                path.write_bytes(valid[name])

        return judge

    def seeds(folder: Path) -> list[bytes]:
        valid = files(folder / "valid")
        return [bytes([number]) + valid[name] for number, name in enumerate(sorted(valid))]

    return Target(make, seeds, tuple(modules))


def fixed(**files: bytes) -> Callable[[Path], Files]:
    """Files whose content is known beforehand; `__` in a name stands for a dot."""

    def written(folder: Path) -> Files:
        folder.mkdir(exist_ok=True)
        return {name.replace("__", "."): content for name, content in files.items()}

    return written
