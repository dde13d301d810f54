"""The tests. What is imported for them is compiled once, before anything else of theirs.

Hundreds of tests start the program, and several processes collect the tests: each would compile
everything anew where nothing may be kept beside the code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    _compiled = str(Path(__file__).parents[1] / ".pytest_cache" / "compiled")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = _compiled
    sys.dont_write_bytecode = False
