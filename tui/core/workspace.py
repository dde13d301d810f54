"""The paths that the file tools may touch: the workspace, added folders, and the ceiling.

Confinement is by real path: symlinks and `..` are resolved before the comparison. It limits the
file tools only; a command that the person lets run is not confined.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.dataclass import dataclass, replace
from tui.core.errors import ToolError

PRIVATE_DIR = ".holdfast"
WORKTREES: Final = (PRIVATE_DIR, "worktrees")
"""The folder in a repository for the git worktrees of sessions, each by its name."""
TOOL_RESULTS: Final = "tool-results"
"""The name of the folder of full tool results, wherever it is."""
BOOT_FILES: Final = (f"{PRIVATE_DIR}/boot.md", ".agent-loop/boot.md")
"""The files of a folder with the text that its sessions begin with; the first one that exists
counts."""
BOOT_READ_MAX: Final = 4_000_000
"""Maximum bytes of such a text that are read."""


_LONGEST: Final = 4096
"""No system opens a longer path, and following one takes time with the square of its length."""
_TMP: Final = Path("/tmp")  # noqa: S108 - as commands name it


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders that the file tools may touch: `root` and `extra`, real and absolute.

    With `widened` (set by /elevated) the file tools may leave the workspace, but never the folder
    `ceiling`; `/` is no limit. `scratch` is a real folder that takes the full tool results if
    nothing may stay in the workspace (`--no-session`), `spare` one that takes them if nothing can
    be written there. `temporary` is the real folder that confined commands see as `/tmp`: the file
    tools call it so, too. `readable` are further real folders that are only read.
    """

    root: Path
    extra: tuple[Path, ...] = ()
    ceiling: Path = Path("/")
    widened: bool = False
    scratch: Path | None = None
    spare: Path | None = None
    temporary: Path | None = None
    readable: tuple[Path, ...] = ()

    @classmethod
    def at(
        cls,
        root: Path | str,
        *,
        extra: tuple[Path | str, ...] = (),
        ceiling: Path | str = "~",
        scratch: Path | str | None = None,
        spare: Path | str | None = None,
    ) -> Workspace:
        """Make a workspace of real paths. A root outside the ceiling is allowed nevertheless.

        `spare` counts only if the workspace cannot be written now.
        """
        real = tuple(Path(os.path.realpath(Path(p).expanduser())) for p in (root, *extra, ceiling))
        own = Path(os.path.realpath(scratch)) if scratch else None
        other = Path(os.path.realpath(spare)) if spare and not _can_keep(real[0]) else None
        return cls(root=real[0], extra=real[1:-1], ceiling=real[-1], scratch=own, spare=other)

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders of the file tools, the workspace first."""
        return (self.root, *self.extra)

    def widen(self, widened: bool) -> Workspace:
        return self if widened == self.widened else replace(self, widened=widened)

    def resolve(self, path: str) -> Path:
        """Return the real absolute path that a tool named. The file need not exist.

        Raises ToolError for an empty path, a path that cannot exist (a NUL, half a surrogate pair,
        more characters than the system takes), and one that leaves the allowed folders.
        """
        if len(path) > _LONGEST:
            raise ToolError(f"The path has {len(path):,} characters; the limit is {_LONGEST:,}.")
        if not path or "\0" in path:
            raise ToolError("The path is empty or contains a NUL byte.", hint="Give a file path.")
        given = os.path.expanduser(path)  # noqa: PTH111 - an unknown ~user is a plain name
        try:
            real = _as_on_disk(Path(os.path.realpath(self.where(self.root / given))))
        except UnicodeEncodeError as error:
            raise ToolError("The path contains half a surrogate pair.") from error
        except OSError as error:  # a link has been replaced before it was read
            raise ToolError(
                f"{path} couldn't be followed: {error.strerror}.",
                hint="A running command is changing its folders. Stop it, or try again.",
            ) from error
        if self.contains(real):
            return real
        raise ToolError(
            f"{path} is outside the workspace ({self.root}).",
            hint="Use a path inside the workspace, or ask for the folder to be added (--add-dir).",
        )

    def where(self, path: Path) -> Path:
        """Return the real place of an absolute path that a confined command would call so: see
        `temporary`."""
        if self.temporary is None or not _within(path := Path(os.path.normpath(path)), _TMP):
            return path
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - it may be missing
        mounted = (*self.roots, *self.readable, home, Path(os.path.realpath(home)))
        if any(_within(path, folder) for folder in mounted):
            return path
        return self.temporary / path.relative_to(_TMP)

    def contains(self, real: Path) -> bool:
        """True if a real path is in an allowed folder."""
        allowed = (*self.roots, *((self.ceiling,) if self.widened else ()))
        results = self.tool_results if self.spare is not None else None
        own = (self.scratch, results, self.temporary, *self.readable)
        return any(_within(real, folder) for folder in (*allowed, *own) if folder is not None)

    def only_reads(self, real: Path) -> bool:
        """True if a real path is allowed only because it is in one of the `readable` folders."""
        return self.opens(real) and not replace(self, readable=()).contains(real)

    def opens(self, real: Path) -> bool:
        """True if a real path is in one of the `readable` folders."""
        return any(_within(real, folder) for folder in self.readable)

    def is_temporary(self, real: Path) -> bool:
        """True if a real path is in the `/tmp` of confined commands."""
        return self.temporary is not None and _within(real, self.temporary)

    def show(self, path: Path) -> str:
        """Return a path as the model and the person read it: relative inside the workspace."""
        if self.temporary is not None and _within(path, self.temporary):
            return str(_TMP / path.relative_to(self.temporary))
        return str(path.relative_to(self.root)) if self.root in path.parents else str(path)

    def parts(self, path: Path) -> tuple[str, ...]:
        """Return the parts of a path that identify it: in a worktree, those below its top."""
        top = worktree_of(self.root)
        return path.relative_to(top).parts if top and _within(path, top) else path.parts

    @property
    def tool_results(self) -> Path:
        """The folder for full tool results. Asking does not create it."""
        if self.spare is not None and self.scratch is None:
            return self.spare / TOOL_RESULTS
        return (self.scratch or self.root) / PRIVATE_DIR / TOOL_RESULTS


def worktree_of(folder: Path) -> Path | None:
    """Return the top of the worktree of ours that a folder is in, by its path alone."""
    parts = folder.parts
    for at in range(len(parts) - 3, 0, -1):
        if parts[at : at + 2] == WORKTREES:
            return Path(*parts[: at + 3])
    return None


def checkout_of(folder: Path) -> Path:
    """Return the original folder of one in a worktree of ours; any other folder as it is."""
    top = worktree_of(folder)
    return top.parents[2] / folder.relative_to(top) if top else folder


def text_of_path(path: Path) -> str:
    """Return a path as a text that a request can hold, and by which the file tools find it again.

    A folder above whose name is no text is left out if the rest is enough.
    """
    text = str(path)
    if text.isprintable() or PRIVATE_DIR not in path.parts:
        return text.encode("utf-8", "replace").decode()
    return str(Path(*path.parts[path.parts.index(PRIVATE_DIR) :]))


def _can_keep(root: Path) -> bool:
    """True if private files can be made in a workspace, as far as is known without trying."""
    place = root
    for name in (PRIVATE_DIR, TOOL_RESULTS):
        inner = place / name
        if not os.path.lexists(inner):
            break
        if inner.is_symlink() or not inner.is_dir():
            return False
        place = inner
    return os.access(place, os.W_OK | os.X_OK)


def _as_on_disk(real: Path) -> Path:
    """Return a path by the names that its parts have on the disk, if they are spelled with other
    code points there (`é` as one character or two): a file of that name would look like a twin."""
    if str(real).isascii() or os.path.lexists(real):
        return real
    from unicodedata import normalize  # noqa: PLC0415 - hardly ever needed

    place = Path(real.anchor)
    for part in real.parts[1:]:
        inner = place / part
        if not part.isascii() and not os.path.lexists(inner):
            wanted = normalize("NFC", part)
            with suppress(OSError):
                names = [n for n in os.listdir(place) if normalize("NFC", n) == wanted]  # noqa: PTH208
                inner = place / names[0] if len(names) == 1 else inner
        place = inner
    return Path(os.path.realpath(place))


def _within(path: Path, folder: Path) -> bool:
    parts = folder.parts
    return bool(parts) and path.parts[: len(parts)] == parts


def safe_search_path(search_path: str, roots: Iterable[Path] = ()) -> str:
    """Return the folders of a PATH that no command confined to `roots` can fill; otherwise the
    system's.

    Programs that Holdfast itself starts must come from there: an active virtual environment in the
    workspace would otherwise bring its own `git`. Relative folders are left out for the same
    reason.
    """
    real = [os.path.realpath(root) for root in roots]
    with suppress(OSError):  # it was removed
        real.append(os.path.realpath(os.getcwd()))  # noqa: PTH109 - as above
    folders = [
        folder
        for folder in search_path.split(os.pathsep)
        if os.path.isabs(folder)  # noqa: PTH117 - much faster
        and not any(f"{os.path.realpath(folder)}/".startswith(f"{root}/") for root in real)
    ]
    return os.pathsep.join(folders) or "/usr/bin:/bin"
