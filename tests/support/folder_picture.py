"""A folder as text, to be compared with how it was."""

from __future__ import annotations

from pathlib import Path


def picture(folder: Path) -> dict[str, str]:
    """All names below a folder, with kind, mode and content."""
    seen: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        mode = oct(path.lstat().st_mode)
        content = path.read_bytes().hex() if path.is_file() and not path.is_symlink() else ""
        link = str(path.readlink()) if path.is_symlink() else ""
        seen[str(path.relative_to(folder))] = f"{mode} {link} {content}"
    return seen
