"""Sessions made by chance in which what was sent keeps changing: overlays, pins, breaks, repairs,
compactions that stand or don't, and rewinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.context.pictures import gif, image
from tests.context.sessions import MODEL
from tests.context.wild import call, text
from tui.context.compaction_in_force import prefix_sha256
from tui.context.overrides import SPEAKING
from tui.core.dataclass import dataclass, field
from tui.session.records import Record

VIEWS = ("full", "clamped", "imageless", "pruned", "masked", "masked")


@dataclass(slots=True)
class ChangedSession:
    """Grows a session record by record; `path` is the branch as it is now."""

    chance: Random
    path: list[Record] = field(default_factory=list[Record])
    _made: int = 0
    _open: list[str] = field(default_factory=list[str])

    def step(self) -> None:
        """Do one thing that a session can do."""
        steps: Sequence[tuple[int, Callable[[], object]]] = (
            (30, self._turn_goes_on),
            (3, self._overlay),
            (2, self._pin),
            (3, self._break),
            (3, self._compaction),
            (1, lambda: self.add("uncompaction")),
            (1, self._repair),
            (1, self._rewind),
            (1, self._notice),
            (1, self._odd),
        )
        chosen, *_ = self.chance.choices([do for _, do in steps], [weight for weight, _ in steps])
        chosen()

    def add(self, type_: str, **data: Any) -> Record:
        """Append a record."""
        self._made += 1
        parent = self.path[-1].id if self.path else None
        record = Record(type_, f"r{self._made:04}", parent, "2026-11-21T09:00:00.000Z", data)
        self.path.append(record)
        return record

    def _any(self, *types: str) -> str:
        """The id of a record of such a type, or of none."""
        known = [record.id for record in self.path if record.type in types]
        if not known or self.chance.random() < 0.05:
            return "nothing"
        late = self.chance.random() < 0.7
        return self.chance.choice(known[-6:] if late else known)

    def _turn_goes_on(self) -> None:
        chance = self.chance
        if self._open:
            id_ = self._open.pop(chance.randrange(len(self._open)))
            content = [text(chance.choice(("ok", "y" * 700, "line\n" * 2500)))]
            if chance.random() < 0.1:
                content.append(image(gif(9, 9), "image/gif"))
            failed = {"is_error": chance.random() < 0.2}
            self.add("tool_result", call_id=id_, name="read_file", content=content, **failed)
        elif self.path and self.path[-1].type in {"user", "tool_result", "notice"}:
            model = chance.choices((MODEL, "claude-opus-5-5"), (9, 1))[0]
            sign = f"s{self._made}"
            thought = [{"type": "thinking", "thinking": "hm " * 9, "signature": sign}]
            said = [text(f"so {self._made}")]
            if chance.random() < 0.5:
                self._open = [f"c{self._made}-{n}" for n in range(chance.randint(1, 2))]
                said = [call(id_, input_={"path": "a.py"}) for id_ in self._open]
            counts = {"input_tokens": 50 * len(self.path), "output_tokens": 90}
            content = [*(thought if chance.random() < 0.7 else []), *said]
            self.add("assistant", content=content, model=model, usage=counts)
        else:
            words = chance.choice((f"prompt {self._made}", "again"))
            self.add("user", content=[text(words)], text=words)

    def _overlay(self) -> None:
        view, by = self.chance.choice(VIEWS), self.chance.choice(("person", "program"))
        target, wait = self._any(*SPEAKING), self.chance.random() < 0.3
        self.add("overlay", target=target, view=view, by=by, age=2, wait=wait)

    def _pin(self) -> None:
        on = self.chance.random() < 0.7
        self.add("pin", target=self._any(*SPEAKING), pinned=on)

    def _break(self) -> None:
        data: dict[str, Any] = {"reason": "mask"}
        if self.chance.random() < 0.6:
            data["from"] = self._any(*SPEAKING)
        if self.chance.random() < 0.3:
            data["cause"] = self._any("compaction")
        if self.chance.random() < 0.3:
            data["back"] = [self._any("assistant") for _ in range(2)]
        self.add("break", **data)

    def _compaction(self) -> None:
        covers = self._any(*SPEAKING)
        places = {record.id: place for place, record in enumerate(self.path)}
        before = self.path[: places.get(covers, 0) + 1]
        stands = self.chance.random() < 0.8
        digest = prefix_sha256(before) if stands else "another"
        summary = f"what was said {self._made}"
        self.add("compaction", covers=covers, summary=summary, prefix_sha256=digest)

    def _repair(self) -> None:
        if self.chance.random() < 0.3:
            levels = ("strict", "drop_thinking", "text_only", "summary_only")
            self.add("repair", rung=self.chance.choice(levels))

    def _rewind(self) -> None:
        if self.path and self.chance.random() < 0.5:
            self.path = self.path[: self.chance.randint(len(self.path) // 2, len(self.path))]
            self._open = []

    def _notice(self) -> None:
        self.add("notice", kind=self.chance.choice(("state", "pin")), text=f"fact {self._made}")

    def _odd(self) -> None:
        if self.chance.random() < 0.5:
            self._open = []
            self.add("interrupt", text=self.chance.choice(("half an", "")))
        else:  # a result whose call is elsewhere, as in damaged files
            said = self.chance.choice(("late", "late\n" * 300))
            self.add("tool_result", call_id=self._any("notice"), content=[text(said)])
