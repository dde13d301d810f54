"""The facts of a record, for readers of a session that is over.

A prompt, an answer, a call and its result have a form of their own in every reader; anything else
in a record becomes the fact that was published when it was written. A field that a record lacks is
empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from tui.core import facts
from tui.core.errors import ErrorClass
from tui.core.fact_words import RELOAD_WAITS, REWOUND, fact_lines, without_feature, words
from tui.core.facts import Fact, Step
from tui.core.messages import Usage, list_of, object_of, string_of

Data: TypeAlias = Mapping[str, Any]


class Recorded(Protocol):
    """A record: its type and its fields, which nobody changes."""

    @property
    def type(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Recorded)


def retold(records: Sequence[R]) -> Iterator[tuple[R, Fact | None]]:
    """Yield every record with its fact, if it has one. Results that were pruned one after another
    go with the first."""
    place = 0
    while place < len(records):
        record = records[place]
        last = place
        while last < len(records) and _is_pruned(records[last]):
            last += 1
        if last > place:
            yield record, facts.Pruned(last - place, 0)
            yield from ((one, None) for one in records[place + 1 : last])
            place = last
            continue
        make = _FACTS.get(record.type)
        yield record, make(record.data) if make else None
        place += 1


def retold_lines(fact: Fact) -> tuple[str, ...]:
    """Return a fact of a record as lines."""
    if isinstance(fact, facts.ErrorRaised):
        return fact_lines(fact)  # with its class
    sentence = words(fact)
    return sentence.lines if sentence else ()


def _is_pruned(record: Recorded) -> bool:
    data = record.data
    return record.type == "overlay" and data.get("view") == "pruned" and data.get("by") != "person"


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _amount(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _objects(value: object) -> tuple[dict[str, Any], ...]:
    return tuple(map(object_of, list_of(value)))


def _text(data: Data, name: str) -> str:
    return string_of(data.get(name))


def _class(data: Data) -> ErrorClass:
    return cast("ErrorClass", _text(data, "error_class") or "unknown")


def _error(data: Data) -> Fact:
    return facts.ErrorRaised(_class(data), _text(data, "message"), True, _text(data, "hint"))


def _retry(data: Data) -> Fact:
    attempt = _number(data.get("attempt")) or 1
    return facts.RetryScheduled(
        attempt,
        max(attempt, _number(data.get("max_attempts"))),
        _amount(data.get("delay_s")) or 0.0,
        _text(data, "reason"),
        _number(data.get("status")) or None,
        _class(data),
        _text(data, "request_id") or None,
        _number(data.get("received")),
    )


def _failover(data: Data) -> Fact:
    return facts.ModelSwitched(
        _text(data, "from"),
        _text(data, "to"),
        _text(data, "reason"),
        _text(data, "back_at") or None,
        _class(data) if data.get("error_class") else None,
        _number(data.get("status")) or None,
        _text(data, "request_id") or None,
        _number(data.get("received")),
    )


def _parked(data: Data) -> Fact:
    return facts.Parked(_text(data, "until"), _text(data, "reason"), _class(data))


def _recovery(data: Data) -> Fact:
    sizes = _number(data.get("tokens_before")), _number(data.get("tokens_after"))
    return facts.RecoveryStep(cast("Step", _text(data, "step")), _text(data, "action"), *sizes)


def _compaction(data: Data) -> Fact:
    before, after = _number(data.get("tokens_before")), _number(data.get("tokens_after"))
    removed = _number(data.get("messages_removed"))
    texts = _text(data, "summary"), _text(data, "reason")
    return facts.CompactionFinished(before, after, removed, *texts)


def _exam(data: Data) -> Fact:
    asked = _objects(data.get("facts"))
    held = sum(one.get("held") is True for one in asked)
    verbatim = _number(data.get("verbatim"))
    return facts.ExamFinished(asked, held, verbatim, _text(data, "model"), _text(data, "problem"))


def _memory(data: Data) -> Fact:
    return facts.MemorySaved(_text(data, "path"), _number(data.get("added")))


def _break(data: Data) -> Fact:
    tokens, thoughts = _number(data.get("tokens")), _number(data.get("thoughts"))
    usd = _amount(data.get("cost_usd"))
    return facts.ContextBroken(_text(data, "reason"), _text(data, "by"), tokens, thoughts, usd)


def _changed(data: Data) -> Fact:
    return facts.ContextChanged((dict(data),))


def _directive(data: Data) -> Fact:
    on = (data.get(name) is True for name in ("think", "verbose", "elevated"))
    return facts.DirectivesChanged(*on, effort=_text(data, "effort"))


def _hook(data: Data) -> Fact:
    code = data.get("exit_code")
    return facts.HookFinished(
        _text(data, "event"),
        _text(data, "command"),
        _text(data, "outcome"),
        code if isinstance(code, int) else None,
        _amount(data.get("seconds")) or 0.0,
        _text(data, "text"),
        _text(data, "call_id"),
    )


def _job_moved(data: Data) -> Fact:
    job, call, by = _text(data, "job"), _text(data, "call_id"), _text(data, "by")
    return facts.JobStarted(job, call, "", _number(data.get("pid")), by)


def job_finished(data: Data) -> facts.JobFinished:
    """Return the end of a background command, by the fields of its record."""
    code = data.get("exit_code")
    return facts.JobFinished(
        job=_text(data, "job") or "job",
        call_id=_text(data, "call_id"),
        command=_text(data, "command"),
        exit_code=code if isinstance(code, int) else None,
        state=_text(data, "state") or "ended",
        stopped_by=_text(data, "stopped_by"),
        seconds=_amount(data.get("seconds")) or 0.0,
        path=_text(data, "path"),
        bytes=_number(data.get("bytes")),
        text=_text(data, "text"),
    )


def _sub_agent(data: Data) -> Fact:
    call, session, agent = (_text(data, name) for name in ("call_id", "session", "agent"))
    state = _text(data, "state")
    if state == "started":
        path, about = _text(data, "path") or None, _text(data, "description")
        return facts.SubAgentStarted(call, session, path, agent, about, _text(data, "model"))
    spent = _objects(data.get("spent"))
    usage = sum((Usage.from_json(one.get("usage")) for one in spent), Usage())
    requests = sum(_number(one.get("requests")) for one in spent)
    calls = _number(data.get("calls"))
    return facts.SubAgentFinished(call, session, agent, state, calls, requests, usage)


def _repair(data: Data) -> Fact:
    findings = _objects(data.get("findings"))
    return facts.RepairApplied(
        tuple({name: string_of(value) for name, value in one.items()} for one in findings)
    )


def _feature(data: Data) -> Fact:
    return facts.Notice(without_feature(_text(data, "feature")))


def _notice(data: Data) -> Fact | None:
    """Return a notice to the model that the person saw too."""
    text = _text(data, "text")
    match data.get("kind"):
        case "changed":
            reworded = re.sub(r"(?<=[a-z] )you last saw", "the model last saw", text)
            reworded = re.sub(r" Read (it|them) again before you rely on \1\.", "", reworded)
            return facts.FilesChanged((), reworded)
        case "tools":
            return facts.ToolsChanged("", (), (), text)
        case _:
            return None


def _mcp(data: Data) -> Fact:
    off = ", ".join(map(string_of, list_of(data.get("off"))))
    return facts.Notice(f"Tools that the model does not get: {off or 'none'}.")


def _note(data: Data) -> Fact:
    return facts.Notice(_text(data, "text"))


def _title(data: Data) -> Fact:
    return facts.TitleChanged(_text(data, "title"))


def _checkpoint(data: Data) -> Fact:
    files = _number(data.get("files"))
    return facts.CheckpointTaken(_text(data, "checkpoint"), files, _text(data, "call_id"))


_FACTS: Final[Mapping[str, Callable[[Data], Fact | None]]] = {
    "break": _break,
    "checkpoint": _checkpoint,
    "compaction": _compaction,
    "directive": _directive,
    "error": _error,
    "exam": _exam,
    "failover": _failover,
    "feature": _feature,
    "hook": _hook,
    "job_ended": job_finished,
    "job_moved": _job_moved,
    "mcp": _mcp,
    "memory": _memory,
    "note": _note,
    "notice": _notice,
    "overlay": _changed,
    "parked": _parked,
    "pin": _changed,
    "recovery": _recovery,
    "reload": lambda _: facts.Notice(RELOAD_WAITS),
    "repair": _repair,
    "retry": _retry,
    "rewind": lambda _: facts.Notice(REWOUND),
    "sub_agent": _sub_agent,
    "title": _title,
    "uncompaction": lambda _: facts.CompactionUndone(0),
}
