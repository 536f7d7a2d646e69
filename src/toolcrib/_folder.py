"""A folder whose files can be reached, and nothing outside it, whoever moves or links things meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from toolcrib.errors import ToolExecutionError
from toolcrib.limits import MAX_FILE_BYTES, MAX_FOLDER_ENTRIES, MAX_LINKS, MAX_PATH_CHARS

__all__ = ["Entry", "Folder"]

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _FLAGS | getattr(os, "O_DIRECTORY", 0)
# A device or a pipe that took the place of a file after it was looked at does not block.
_FILE = _FLAGS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Entry(NamedTuple):
    """Something in a folder.

    Args:
        path: Where it is, from the folder.
        kind: `file`, `folder`, `link` or `other`.
        size: Bytes of a file.
    """

    path: str
    kind: str
    size: int


class Folder:
    """A folder, and paths that are walked one name at a time from it, so that none leads out.

    The system never follows a link: each is read, and walked as a path of its own, which may lead
    anywhere in the folder. Only regular files are read. Every failure is a ToolExecutionError in words
    for a model, without a path of the machine.

    Args:
        root: The folder; None is the current one, at each call.
        hidden: Whether names that begin with a dot may be used.

    Raises:
        NotADirectoryError: The root is no folder.
        NotImplementedError: The system cannot open files relative to an open folder.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None, *, hidden: bool = False) -> None:
        if not {os.open, os.stat, os.readlink, os.mkdir, os.rename, os.unlink} <= os.supports_dir_fd:
            raise NotImplementedError("files can be confined to a folder only where they open relative to one (POSIX)")
        self._root = None if root is None else Path(root).expanduser().resolve()
        if self._root is not None and not self._root.is_dir():
            raise NotADirectoryError(f"{root} is not a folder")
        self._hidden = hidden

    @property
    def root(self) -> Path:
        """The folder's real path."""
        return self._root or Path.cwd().resolve()

    # -- reading

    def read(self, path: str, most: int = MAX_FILE_BYTES) -> bytes:
        """Return the bytes of a file.

        Args:
            path: Relative to the folder.
            most: How many there may be.

        Raises:
            ToolExecutionError: There is no such file that can be read, or it is too large.
        """
        with _told(path):
            return _bytes_of(self._open(path), path, most)

    def text(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            ToolExecutionError: As `read`, or the file is not text.
        """
        data = self.read(path)
        if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ToolExecutionError(f"{path} is not text ({len(data):,} bytes)")
        encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        return data.decode(encoding, "replace")

    def entries(self, path: str = "") -> list[Entry]:
        """Return what is in a folder, by name; without hidden names, unless they may be used.

        Raises:
            ToolExecutionError: There is no such folder, or it holds too much.
        """
        with _told(path or "."), self._opened_folder(path) as folder:
            place = self._plain(path)
            return [_entry(folder, name, f"{place}{name}") for name in sorted(self._names(folder, path))]

    def files(self, path: str = "") -> Iterator[Entry]:
        """Yield every file in a folder and the folders in it; links are left out.

        Raises:
            ToolExecutionError: There is no such folder, or it holds too much.
        """
        seen, waiting = 0, [path]
        while waiting:
            entries = self.entries(waiting.pop())
            seen += len(entries)
            if seen > MAX_FOLDER_ENTRIES:
                raise ToolExecutionError(f"there are more than {MAX_FOLDER_ENTRIES:,} files: name a folder further in")
            yield from (entry for entry in entries if entry.kind == "file")
            waiting += [entry.path for entry in reversed(entries) if entry.kind == "folder"]

    # -- writing

    def write(self, path: str, data: bytes, *, new: bool = False) -> bool:
        """Write a file whole, or not at all, and make the folders it is in; return whether it was there before.

        Args:
            path: Relative to the folder.
            data: What the file is to hold.
            new: Whether there must be none yet.

        Raises:
            ToolExecutionError: It cannot be written there, or is too large.
        """
        if len(data) > MAX_FILE_BYTES:
            raise ToolExecutionError(f"{path} would be larger than {MAX_FILE_BYTES:,} bytes")
        with _told(path), self._place(path, make=True) as (folder, name):
            before = _lstat(folder, name)
            if before is not None and (new or not stat.S_ISREG(before.st_mode)):
                raise ToolExecutionError(f"{path} is there already" if new else f"{path} is not a file")
            _replace(folder, name, data, before)
            return before is not None

    # -- the walk

    def _open(self, path: str) -> int:
        with self._place(path) as (folder, name):
            _check_file(_lstat(folder, name), path)
            opened = os.open(name, _FILE, dir_fd=folder)
        try:
            _check_file(os.fstat(opened), path)
        except BaseException:
            os.close(opened)
            raise
        return opened

    @contextmanager
    def _opened_folder(self, path: str) -> Generator[int]:
        with self._place(path) as (folder, name):
            found = _lstat(folder, name)
            if found is None:
                raise FileNotFoundError(path)
            opened = os.open(name, _FOLDER, dir_fd=folder)
        try:
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _place(self, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """Give an open folder, and the name in it that is no link and that the path comes down to."""
        waiting, links = list(reversed(self._asked(path))), 0
        root = self.root
        opened = [os.open(root, _FOLDER)]
        name = "."
        try:
            while waiting:
                part = waiting.pop()
                if part == "..":
                    _leave(opened, path)
                    continue
                found = _lstat(opened[-1], part)
                if found is not None and stat.S_ISLNK(found.st_mode):
                    links += 1
                    waiting += reversed(_target(os.readlink(part, dir_fd=opened[-1]), opened, root, path, links))
                elif waiting:
                    opened.append(_entered(opened[-1], part, make=make and found is None))
                else:
                    name = part
            yield opened[-1], name
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _asked(self, path: str) -> list[str]:
        """Return the names in a path as asked for, if it is one that may be."""
        if len(path) > MAX_PATH_CHARS or "\0" in path or not _is_encodable(path):
            raise ToolExecutionError(f"{path[:80]!r} is no path")
        if path.startswith(("/", "~")):
            raise ToolExecutionError(f"{path} is not in this folder: paths are relative to it, as in notes/today.txt")
        parts = _parts(path)
        if not self._hidden and (names := [part for part in parts if part.startswith(".") and part != ".."]):
            raise ToolExecutionError(f"{names[0]} is hidden, and hidden files are not for use here")
        return parts

    def _plain(self, path: str) -> str:
        parts = _parts(path)
        return "/".join([*parts, ""]) if parts else ""

    def _names(self, folder: int, path: str) -> Iterator[str]:
        with os.scandir(folder) as found:
            for count, item in enumerate(found):
                if count >= MAX_FOLDER_ENTRIES:
                    raise ToolExecutionError(f"{path or 'the folder'} holds more than {MAX_FOLDER_ENTRIES:,} files")
                if (self._hidden or not item.name.startswith(".")) and _is_encodable(item.name):
                    yield item.name


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _is_encodable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lstat(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _leave(opened: list[int], path: str) -> None:
    if len(opened) == 1:
        raise _outside(path)
    os.close(opened.pop())


def _entered(folder: int, name: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _target(target: str, opened: list[int], root: Path, path: str, links: int) -> list[str]:
    """Return where a link leads, as names to walk; from the root if it is absolute."""
    if links > MAX_LINKS:
        raise ToolExecutionError(f"{path} leads through too many links")
    if not target.startswith("/"):
        return _parts(target)
    parts, own = _parts(target), _parts(str(root))
    if parts[: len(own)] != own:
        raise _outside(path)
    while len(opened) > 1:
        os.close(opened.pop())
    return parts[len(own) :]


def _outside(path: str) -> ToolExecutionError:
    return ToolExecutionError(f"{path} leads out of this folder: name something in it")


# -- files


def _entry(folder: int, name: str, path: str) -> Entry:
    found = _lstat(folder, name)
    mode = found.st_mode if found else 0
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    kind = next((kind for is_kind, kind in kinds if is_kind(mode)), "other")
    return Entry(path, kind, found.st_size if found and kind == "file" else 0)


def _check_file(found: os.stat_result | None, path: str) -> None:
    if found is None:
        raise FileNotFoundError(path)
    if stat.S_ISDIR(found.st_mode):
        raise ToolExecutionError(f"{path} is a folder: name a file in it")
    if not stat.S_ISREG(found.st_mode):
        raise ToolExecutionError(f"{path} is not a file that can be read: it is a device, a pipe or a socket")


def _bytes_of(descriptor: int, path: str, most: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ToolExecutionError(f"{path} is larger than {most:,} bytes")
    return data


def _replace(folder: int, name: str, data: bytes, before: os.stat_result | None) -> None:
    temporary = f".{token_hex(8)}.tmp"
    descriptor = os.open(temporary, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            file.write(data)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


@contextmanager
def _told(path: str) -> Generator[None]:
    """Tell a model what the system says, by the path it used."""
    try:
        yield
    except FileNotFoundError:
        raise ToolExecutionError(f"there is no {path}: list the folder to see what there is") from None
    except NotADirectoryError:
        raise ToolExecutionError(f"{path} goes through something that is no folder") from None
    except OSError as error:
        raise ToolExecutionError(f"{path}: {error.strerror or 'it cannot be used'}") from None
