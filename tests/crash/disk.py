"""The crash disk: what may be on a disk when the power fails, worked out from what a run did to its files.

The disk keeps what was synced and is free with the rest, as POSIX lets it be. Of the writes to a file after its last
fsync any may be lost, kept, or kept in some 512-byte sectors only, the last of them torn; its new size may be lost.
Of the names made, renamed and deleted in a folder after the fsync of that folder any may be lost, too, whatever
became of the file. An fsync that failed makes nothing durable, and what it should have written is not written by the
next one either: the kernel has marked it clean.

`Disk` follows a run call by call. `Recipe`s say what becomes of what is open; `Disk.image` gives the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from hashlib import blake2b
from pathlib import Path
from random import Random

import msgspec

from tests.crash.append_run import SAID, TRACEBACK
from tests.crash.judge import Ack
from tests.crash.tracing import Call

SECTOR = 512
# Files that no state depends on: SQLite makes the first one anew after a crash, the others are locked, never read.
_WITHOUT_CONTENT = re.compile(r"-shm$|redkey\.(lock|turn)$")
_IGNORED = frozenset(("chmod", "fchmod", "fchmodat", "fchown"))


def is_modelled(path: str) -> bool:
    """True for the files in BASE that a state depends on."""
    return not _WITHOUT_CONTENT.search(path) and path not in (SAID, TRACEBACK)


class Standing(Enum):
    """How durable a change is."""

    SURE = auto()
    OPEN = auto()
    # Its fsync failed: it may be there or not, and no later fsync changes that.
    DOUBTFUL = auto()


class Change:
    """One thing a run did to a file or a folder, with its place in the run."""

    __slots__ = ("number", "standing")

    def __init__(self, number: int) -> None:
        self.number = number
        self.standing = Standing.OPEN


class Write(Change):
    """Bytes written at an offset."""

    __slots__ = ("data", "offset")

    def __init__(self, number: int, offset: int, data: bytes) -> None:
        super().__init__(number)
        self.offset, self.data = offset, data


class Cut(Change):
    """A file cut or stretched to a size."""

    __slots__ = ("size",)

    def __init__(self, number: int, size: int) -> None:
        super().__init__(number)
        self.size = size


class Naming(Change):
    """Names that changed together: each leads to a file or folder now, or to nothing."""

    __slots__ = ("names",)

    def __init__(self, number: int, names: dict[str, File | Folder | None]) -> None:
        super().__init__(number)
        self.names = names


class File:
    """A file: the bytes that are durable, and what was done since."""

    __slots__ = ("_digest", "changes", "durable", "size")

    def __init__(self) -> None:
        self.durable = b""
        self.changes: list[Write | Cut] = []
        # As the running system sees it.
        self.size = 0
        self._digest: bytes | None = None

    def sync(self, *, failed: bool) -> None:
        for change in self.changes:
            if change.standing is Standing.OPEN:
                change.standing = Standing.DOUBTFUL if failed else Standing.SURE
        if all(change.standing is Standing.SURE for change in self.changes):
            self.durable, self.changes, self._digest = self.bytes(KEEP_ALL), [], None

    def bytes(self, recipe: Recipe) -> bytes:
        """What is read after the power came back."""
        data, sure = bytearray(self.durable), len(self.durable)
        for change in self.changes:
            if change.standing is Standing.SURE:
                sure = change.size if isinstance(change, Cut) else max(sure, change.offset + len(change.data))
            if isinstance(change, Cut):
                if change.standing is Standing.SURE or recipe.keeps(change):
                    del data[change.size :]
                    data.extend(bytes(change.size - len(data)))
            elif change.standing is Standing.SURE:
                _put(data, change.offset, change.data)
            else:
                recipe.write(data, change)
        return recipe.sized(data, sure)

    def read(self, recipe: Recipe) -> tuple[bytes, bytes]:
        """The bytes, and a digest of them."""
        if self.changes:
            data = self.bytes(recipe)
            return data, _digest(data)
        if self._digest is None:
            self._digest = _digest(self.durable)
        return self.durable, self._digest


class Folder:
    """A folder: the names that are durable, and what was done since."""

    __slots__ = ("changes", "durable", "names")

    def __init__(self) -> None:
        self.durable: dict[str, File | Folder] = {}
        self.changes: list[Naming] = []
        # As the running system sees it.
        self.names: dict[str, File | Folder] = {}

    def change(self, naming: Naming) -> None:
        self.changes.append(naming)
        _rename(self.names, naming)

    def sync(self, *, failed: bool) -> None:
        if not failed:
            self.durable, self.changes = dict(self.names), []

    def after(self, recipe: Recipe) -> dict[str, File | Folder]:
        """The names that are there after the power came back."""
        names = dict(self.durable)
        for change in self.changes:
            if recipe.keeps(change):
                _rename(names, change)
        return names


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _put(data: bytearray, offset: int, new: bytes) -> None:
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(new)] = new


def _rename(names: dict[str, File | Folder], naming: Naming) -> None:
    for name, node in naming.names.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Recipe:
    """What becomes of the changes that are open when the power fails. This one keeps all of them, in full."""

    def keeps(self, change: Change) -> bool:
        return True

    def write(self, data: bytearray, change: Write) -> None:
        if self.keeps(change):
            _put(data, change.offset, change.data)

    def sized(self, data: bytearray, sure: int) -> bytes:
        """The file with the size that is kept, which may be as small as what is sure."""
        return bytes(data)


KEEP_ALL = Recipe()


class Only(Recipe):
    """Keeps a chosen set of changes."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = frozenset(numbers)

    def keeps(self, change: Change) -> bool:
        return change.number in self._numbers


class Drawn(Recipe):
    """Draws the fate of each change, down to the sector; the kinds of damage are drawn for the whole state first."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._kept_writes, self._kept_names = draw.choice(_CHANCES), draw.choice(_CHANCES)
        self._sectors = draw.random() < 0.6
        self._kept_sectors = draw.choice((0.05, 0.5, 0.95))
        self._torn = draw.choice((0.0, 0.0, 0.2))
        self._garbage = draw.random() < 0.2
        self._size_lost = draw.choice((0.0, 0.0, 0.3))

        self._fates: dict[int, bool] = {}

    def keeps(self, change: Change) -> bool:
        if change.number not in self._fates:
            chance = self._kept_names if isinstance(change, Naming) else self._kept_writes
            self._fates[change.number] = self._draw.random() < chance
        return self._fates[change.number]

    def write(self, data: bytearray, change: Write) -> None:
        end = change.offset + len(change.data)
        if self._draw.random() < self._kept_writes:
            if not self._sectors:
                _put(data, change.offset, change.data)
                return
            self._stretch(data, end)
            for first, last in _sectors(change.offset, end):
                self._write_sector(data, change, first, last)
        elif self._draw.random() < 0.5:
            self._stretch(data, end)

    def _write_sector(self, data: bytearray, change: Write, first: int, last: int) -> None:
        if self._draw.random() >= self._kept_sectors:
            return
        if self._draw.random() < self._torn:
            last = self._draw.randint(first, last)
        data[first:last] = change.data[first - change.offset : last - change.offset]

    def _stretch(self, data: bytearray, end: int) -> None:
        """The size is kept and the bytes are not: zeros, or whatever was on the disk before."""
        missing = end - len(data)
        if missing > 0:
            data.extend(self._draw.randbytes(missing) if self._garbage else bytes(missing))

    def sized(self, data: bytearray, sure: int) -> bytes:
        if len(data) > sure and self._draw.random() < self._size_lost:
            del data[self._draw.choice((sure, self._draw.randint(sure, len(data)))) :]
        return bytes(data)


_CHANCES = (0.0, 0.1, 0.5, 0.5, 0.9, 1.0)


def _sectors(first: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a range that lie in one sector each."""
    while first < end:
        last = min(end, (first // SECTOR + 1) * SECTOR)
        yield first, last
        first = last


class Image(msgspec.Struct, frozen=True):
    """The files and folders that are there after the power came back, and a digest of them all."""

    files: dict[str, bytes]
    folders: Sequence[str]
    digest: bytes

    def write(self, base: Path) -> None:
        """Put the image where nothing is yet."""
        for folder in self.folders:
            (base / folder).mkdir(mode=0o700)
        for name, data in self.files.items():
            (base / name).write_bytes(data)


class Disk:
    """The disk under one or several runs in BASE, one after the other."""

    def __init__(self, base: Path) -> None:
        self._base = f"{base}/"
        self._root = Folder()
        self._number = 0
        self.acks: list[Ack] = []

    def follow(self, calls: Iterable[Call]) -> Iterator[int]:
        """Take in what a run did; yields the number of each change, sync or word said when it has happened."""
        for call in calls:
            if call.result is not None and call.name not in _IGNORED and self._take(call):
                yield self._number
                self._number += 1

    def open_changes(self) -> list[int]:
        """The numbers of all changes whose fate is not sealed, in the order in which they were made."""
        return sorted(
            {
                change.number
                for node in _nodes(self._root)
                for change in node.changes
                if change.standing is not Standing.SURE
            }
        )

    def image(self, recipe: Recipe) -> Image:
        """What is on the disk when the power fails now and this becomes of what is open."""
        files: dict[str, bytes] = {}
        folders: list[str] = []
        digest = blake2b(digest_size=16)
        for path, node in _walk(self._root, "", recipe):
            digest.update(path.encode() + b"\0")
            if isinstance(node, Folder):
                folders.append(path)
            else:
                files[path], part = node.read(recipe)
                digest.update(part)
        return Image(files, folders, digest.digest())

    # One call.

    def _take(self, call: Call) -> bool:
        """True when the call changed or synced something here, or said something."""
        paths = [path.removeprefix(self._base) for path in call.paths if path.startswith(self._base)]
        # SQLite opens the folder of a file by its name alone, and BASE itself has no name below BASE.
        paths += [""] if f"{self._base[:-1]}" in call.paths else []
        if not paths:
            return False
        if paths == [SAID]:
            return self._hear(call)
        if call.name in ("fsync", "fdatasync"):
            self._node(paths[0]).sync(failed=call.failed)
            return True
        return not call.failed and is_modelled(paths[0]) and self._change(call, paths)

    def _hear(self, call: Call) -> bool:
        if call.name != "writev":
            return False
        said = msgspec.json.decode(call.data)
        if said.get("acknowledged"):
            self.acks.append(Ack(said["unit"], {topic: tuple(head) for topic, head in said["heads"].items()}))
        return True

    def _change(self, call: Call, paths: Sequence[str]) -> bool:
        path = paths[0]
        assert not path.endswith("(deleted)"), f"{path} is changed after it was deleted"
        match call.name:
            case "openat":
                return self._open(path, " ".join(call.rest))
            case "write" | "pwrite64":
                file = self._file(path)
                offset = int(call.rest[-1]) if call.name == "pwrite64" else file.size
                file.changes.append(Write(self._number, offset, call.data))
                file.size = max(file.size, offset + len(call.data))
            case "ftruncate":
                self._cut(path, int(call.rest[-1]))
            case "mkdir" | "mkdirat":
                self._name(path, Folder())
            case "unlink" | "unlinkat" | "rmdir":
                self._name(path, None)
            case "rename" | "renameat" | "renameat2":
                self._move(*paths)
            case "link" | "linkat":
                self._name(paths[1], self._node(path))
            case _:
                raise AssertionError(f"the crash disk does not know the call {call.name} on {path}")
        return True

    def _open(self, path: str, flags: str) -> bool:
        folder, name = self._place(path)
        if "O_CREAT" in flags and name not in folder.names:
            self._name(path, File())
            return True
        assert "O_APPEND" not in flags, "the crash disk takes a file without O_APPEND to be written from its start"
        if "O_TRUNC" in flags:
            self._cut(path, 0)
        return "O_TRUNC" in flags

    def _cut(self, path: str, size: int) -> None:
        file = self._file(path)
        file.changes.append(Cut(self._number, size))
        file.size = size

    # Names.

    def _node(self, path: str) -> File | Folder:
        node: File | Folder = self._root
        for part in filter(None, path.split("/")):
            assert isinstance(node, Folder)
            node = node.names[part]
        return node

    def _file(self, path: str) -> File:
        node = self._node(path)
        assert isinstance(node, File)
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rpartition("/")
        folder = self._node(above)
        assert isinstance(folder, Folder)
        return folder, name

    def _name(self, path: str, node: File | Folder | None) -> None:
        folder, name = self._place(path)
        folder.change(Naming(self._number, {name: node}))

    def _move(self, old: str, new: str) -> None:
        node = self._node(old)
        (source, old_name), (target, new_name) = self._place(old), self._place(new)
        if source is target:
            source.change(Naming(self._number, {old_name: None, new_name: node}))
        else:
            # One change of two folders: it is kept in both or in none, until one of them is synced.
            source.change(Naming(self._number, {old_name: None}))
            target.change(Naming(self._number, {new_name: node}))


def _walk(folder: Folder, path: str, recipe: Recipe) -> Iterator[tuple[str, File | Folder]]:
    """Everything that is there after the power came back, folders before what is in them."""
    for name, node in sorted(folder.after(recipe).items()):
        yield path + name, node
        if isinstance(node, Folder):
            yield from _walk(node, f"{path}{name}/", recipe)


def _nodes(folder: Folder) -> Iterator[File | Folder]:
    """Everything that can be reached now or could be again when changes are lost."""
    yield folder
    nodes = [*folder.durable.values(), *(node for change in folder.changes for node in change.names.values() if node)]
    for node in {id(one): one for one in nodes}.values():
        if isinstance(node, Folder):
            yield from _nodes(node)
        else:
            yield node
