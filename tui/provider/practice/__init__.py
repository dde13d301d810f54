"""The practice model: answers by rules, offline, and says so; or replays a script.

It sees what any model sees, a request, and nothing else. What it did so far it reads from the
messages, so that a session of it can be saved, killed, resumed and handed to another model.
Faults that a real server has can be put before either (`faulty`, and `faults` in a script).
"""

from tui.provider.practice.fault import DRILL, Fault
from tui.provider.practice.faults import Faulty, faulty
from tui.provider.practice.provider import PracticeModel
from tui.provider.practice.script import Script, ScriptedModel, read_script

__all__ = [
    "DRILL",
    "Fault",
    "Faulty",
    "PracticeModel",
    "Script",
    "ScriptedModel",
    "faulty",
    "read_script",
]
