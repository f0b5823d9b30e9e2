"""Read files that may be anything: no links, regular files alone, bounded first.

Paths are relative to a root. The root is the user's word, and links to it are followed;
nothing below it is trusted: each folder is opened from the one above, without links, so
that no check can be overtaken by a change of the tree.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from generator.problems import Problem, blocking
from generator.problems.messages import one_line

FILE_UNREADABLE = blocking("""file-unreadable: The operating system refuses to open or
    read the file.
    Fix: Check that the file exists and that you may read it.
    Finds: a definition that another user owns, with the permissions 600""")
FILE_NOT_REGULAR = blocking("""file-not-regular: There is a folder or a device where a
    file should be.
    Fix: Replace it with a file.
    Finds: a folder that is named gemm_n8_k4.json""")
FILE_TOO_LARGE = blocking("""file-too-large: The file is larger than any real one; it is
    not read.
    Fix: Move large data into blob/ and point to it.
    Finds: a definition of 200 MiB""")
FILE_LFS_POINTER = blocking("""file-lfs-pointer: The file is a Git LFS pointer, not the
    data itself.
    Fix: Fetch the data with `git lfs pull`.
    Finds: `version https://git-lfs.github.com/spec/v1` instead of JSON""")

LFS_MAGIC = b"version https://git-lfs"
"""The beginning of a Git LFS pointer: what a clone without LFS has for a large file."""

MOST = 64 * 1024 * 1024
"""Bytes of the largest file that is read as a whole without another bound."""

_STEP = 1024 * 1024
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# a pipe or a device put there after it was looked at is not waited for
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotRead(OSError):
    """Raised for a link, something other than a regular file, or too many bytes."""


@contextmanager
def folder_below(root: Path, folder: str, *, make: bool = False) -> Iterator[int]:
    """Yield a descriptor of a folder; `make` makes it and those on the way.

    Raises OSError: NotRead for a link on the way, with the link's path.
    """
    place = _walked_to(root, folder, make)
    try:
        yield place
    finally:
        os.close(place)


def _walked_to(root: Path, folder: str, make: bool = False) -> int:
    """Return a descriptor of a folder, which the caller closes. Raises OSError."""
    place = os.open(root, _ROOT)
    try:
        for name in folder.split("/"):
            if name not in ("", "."):
                place = _stepped(place, name, folder, make)
    except BaseException:
        os.close(place)
        raise
    return place


def _stepped(place: int, name: str, folder: str, make: bool) -> int:
    """Return a descriptor of a folder in an open one; the caller closes `place` if it raises."""
    if name == "..":
        raise NotRead(errno.EINVAL, "it leads upwards", folder)
    try:
        try:
            inner = os.open(name, _FOLDER, dir_fd=place)
        except FileNotFoundError:
            if not make:
                raise
            # another process may have been faster
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=place)
            inner = os.open(name, _FOLDER, dir_fd=place)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(place, name):
            why = f"{name} is a symbolic link, which is not followed"
            raise NotRead(errno.ELOOP, one_line(why), folder) from None
        raise
    os.close(place)
    return inner


def _is_link(place: int, name: str) -> bool:
    try:
        mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISLNK(mode)


@contextmanager
def opened(root: Path, path: str) -> Iterator[int]:
    """Yield a descriptor that reads a regular file below `root`.

    Raises OSError: NotRead for a link on the way or in its place, and for what is not a
    regular file, which is not even opened.
    """
    folder, _, name = path.rpartition("/")
    place = _walked_to(root, folder)
    try:
        descriptor = _opened_in(place, name, path)
    finally:
        os.close(place)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _opened_in(place: int, name: str, path: str) -> int:
    """Return a descriptor of a regular file in an open folder. Raises as `opened`."""
    mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        raise _not_regular(mode, path)
    descriptor = os.open(name, _FILE, dir_fd=place)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _not_regular(mode, path)
    return descriptor


class LastFolder:
    """The files below `root`, opened one after another; the way to a folder is gone once.

    The folder of the last file stays open until `close`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder: str | None = None
        self._place = -1

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Yield a descriptor that reads a regular file. Raises as `opened`."""
        folder, _, name = path.rpartition("/")
        if folder != self._folder:
            self.close()
            self._place = _walked_to(self.root, folder)
            self._folder = folder
        descriptor = _opened_in(self._place, name, path)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the folder; the next file opens its own."""
        if self._folder is not None:
            self._folder = None
            os.close(self._place)


def _not_regular(mode: int, path: str) -> NotRead:
    if stat.S_ISLNK(mode):
        return NotRead(
            errno.ELOOP, "it is a symbolic link, which is not followed", path
        )
    if stat.S_ISDIR(mode):
        return NotRead(errno.EISDIR, "it is a folder, not a file", path)
    return NotRead(errno.EINVAL, "it is a device or a pipe, not a file", path)


def read_at_most(descriptor: int, most: int) -> bytes:
    """Return the first bytes of a regular file, at most `most`.

    A buffer of `most` bytes costs more than reading a small file does.
    """
    wanted = min(most, os.fstat(descriptor).st_size + 1)
    data = os.read(descriptor, wanted)
    while len(data) == wanted < most:  # the file has grown meanwhile
        wanted = min(most, 2 * wanted)
        data += os.read(descriptor, wanted - len(data))
    return data


def read_bytes(root: Path, path: str, most: int = MOST) -> bytes:
    """Return a file's bytes. Raises OSError: NotRead for what `opened` refuses, and for
    more than `most` bytes, of which none is read.
    """
    with opened(root, path) as descriptor:
        size = os.fstat(descriptor).st_size
        data = read_at_most(descriptor, most + 1) if size <= most else b""
        if max(size, len(data)) > most:
            why = f"it has more than the {most / 2**20:g} MiB that are read"
            raise NotRead(errno.EFBIG, why, path)
        return data


def read_text(root: Path, path: str, most: int = MOST) -> str:
    """Return a file's text. Raises as `read_bytes`, and NotRead for what is not UTF-8."""
    try:
        return read_bytes(root, path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise NotRead(errno.EILSEQ, "it is not UTF-8", path) from None


def sha256_of(root: Path, path: str) -> str:
    """Return the SHA-256 of a file of any size. Raises OSError."""
    digest = sha256()
    with opened(root, path) as descriptor:
        while piece := os.read(descriptor, _STEP):
            digest.update(piece)
    return digest.hexdigest()


def is_absent(root: Path, path: str) -> bool:
    """Return whether nothing lies at a path; behind a link is something."""
    folder, _, name = path.rpartition("/")
    try:
        with folder_below(root, folder) as place:
            os.stat(name, dir_fd=place, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def is_file(root: Path, path: str) -> bool:
    """Return whether a regular file lies below `root`, with no link on the way."""
    mode = mode_of(root, path)
    return mode is not None and stat.S_ISREG(mode)


def is_folder(root: Path, path: str) -> bool:
    """Return whether a folder lies below `root`, with no link on the way."""
    mode = mode_of(root, path)
    return mode is not None and stat.S_ISDIR(mode)


def place_below(root: Path, folder: Path) -> tuple[Path, str]:
    """Return the root to start at, and the way from there to a folder.

    A folder in `root` starts there, since what lies below is not trusted; another one
    is the user's word. Only the text is looked at.
    """
    way = os.path.relpath(folder, root)
    if way == "." or way.split(os.sep)[0] == "..":
        return folder, ""
    return root, way.replace(os.sep, "/")


def file_below(root: Path, file: Path) -> tuple[Path, str]:
    """Return the root to start at, and the way from there to a file; as `place_below`."""
    where, way = place_below(root, file.parent)
    return where, f"{way}/{file.name}" if way else file.name


def mode_of(root: Path, path: str) -> int | None:
    """Return the mode of what lies at a path, a link's own; None where nothing does."""
    folder, _, name = path.rpartition("/")
    try:
        with folder_below(root, folder) as place:
            return os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, order=True)
class Entry:
    """The kind of an entry of a folder; all three are False for a pipe or a device."""

    name: str
    is_folder: bool
    is_file: bool
    is_link: bool


def entries(root: Path, folder: str) -> list[Entry]:
    """Return what is in a folder, sorted by name. Raises OSError: NotRead for a link."""
    with folder_below(root, folder) as place, os.scandir(place) as scanned:
        return sorted(
            Entry(
                entry.name,
                entry.is_dir(follow_symlinks=False),
                entry.is_file(follow_symlinks=False),
                entry.is_symlink(),
            )
            for entry in scanned
        )


def walk_files(root: Path, folder: str, ending: str = "") -> Iterator[str]:
    """Yield the paths of the regular files below a folder that end so; links are left out.

    A folder that can't be listed has none.
    """
    try:
        listed = entries(root, folder)
    except OSError:
        return
    for entry in listed:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_folder:
            yield from walk_files(root, path, ending)
        elif entry.is_file and f"/{path}".endswith(ending):
            yield path


def has_link(root: Path, folder: str) -> bool:
    """Return whether a symbolic link lies anywhere below a folder."""
    try:
        listed = entries(root, folder)
    except OSError:
        return False
    return any(
        entry.is_link or (entry.is_folder and has_link(root, f"{folder}/{entry.name}"))
        for entry in listed
    )


def read_text_file(root: Path, file: str, max_bytes: int) -> bytes | Problem:
    """Return the bytes of a file below `root`, or the Problem that says why not."""
    try:
        with opened(root, file) as descriptor:
            size, data = os.fstat(descriptor).st_size, b""
            if size <= max_bytes:
                data = read_at_most(descriptor, max_bytes + 1)
                size = len(data)
    except NotRead as error:
        message = f"This can't be read: {error.strerror}."
        return FILE_NOT_REGULAR.problem(file, message)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The file can't be read: {one_line(reason)}."
        return FILE_UNREADABLE.problem(file, message)
    if size > max_bytes:
        message = f"The file has at least {size / 2**20:.1f} MiB, more than the "
        message += f"{max_bytes / 2**20:.0f} MiB that are read."
        return FILE_TOO_LARGE.problem(file, message)
    if data.startswith(LFS_MAGIC):
        message = "The file is a Git LFS pointer: the data itself was not fetched."
        return FILE_LFS_POINTER.problem(file, message)
    return data
