"""A report over all sessions of a night: asked, done, refused, undone, red, waiting, money.

`gather` collects it from the files, `session_night` judges one session by its `session_work`,
`findings` is what it consists of, `words` says it as lines or Markdown, `page` draws it. It is
worked out from the records; what a model says of its work counts for nothing.
"""

from tui.app.morning.findings import Morning, NightCommit, NightFinding, NightSpan
from tui.app.morning.gather import NightPlaces, morning_of

__all__ = ["Morning", "NightCommit", "NightFinding", "NightPlaces", "NightSpan", "morning_of"]
