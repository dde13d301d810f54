"""Writing a session as a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.app.ports import Session

if TYPE_CHECKING:
    from tui.app.session_repository import Format


FORMATS: Final[dict[str, Format]] = {"md": "md", "html": "html", "jsonl": "jsonl"}


def written(session: Session, root: Path, wanted: Format) -> tuple[Path, int]:
    """Write a session, as it stands in memory, into a folder. Returns the file, and how many
    secrets were removed. Blocks."""
    from tui.app.session_repository import place_for  # noqa: PLC0415
    from tui.session.copies import write_new  # noqa: PLC0415
    from tui.session.export import export as document_of  # noqa: PLC0415
    from tui.session.reader import LoadedSession  # noqa: PLC0415

    loaded = LoadedSession(session.path or root, session.header, tuple(session.records), ())
    made = document_of(loaded, wanted, title=session.title)
    path = place_for(root, session.id, wanted)
    write_new(path, made.text.encode("utf-8", "replace"))
    return path, made.secrets
