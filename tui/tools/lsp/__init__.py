"""Problems that language servers and linters find in files that were edited.

The client library is imported when the first server is started.
"""

from tui.tools.lsp.base import Checker, CheckerPlace, FileEdit, NotConfinedError, read_text
from tui.tools.lsp.checkers import FINISH_S, LAST_S, Checkers
from tui.tools.lsp.problems import Problem, problem_lines

__all__ = [
    "FINISH_S",
    "LAST_S",
    "Checker",
    "CheckerPlace",
    "Checkers",
    "FileEdit",
    "NotConfinedError",
    "Problem",
    "problem_lines",
    "read_text",
]
