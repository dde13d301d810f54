"""Reads what a hook answered: a decision whatever is around it, or why it can't be understood.

The format is Claude Code's, but where 2.1.332 runs the call (tried: a line of text before or after
the object, `Deny`, no wrapper, a key given twice, two objects, a cut answer), this says no: what
looks like a decision and cannot be understood blocks, with words. Text without one is progress.

What is printed for a prompt or a new session is context for the model, and may quote anything: an
answer there is what begins with `{`, or an object that ends the text on lines of its own.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from tui.core.dataclass import dataclass
from tui.core.formatting import shortened
from tui.core.messages import is_object, object_of, string_of
from tui.core.text_cleaning import without_colours

OUTPUT_MAX: Final = 256 * 1024
"""Bytes of an output that are read; what floods it is read on and dropped."""
_SHOWN: Final = 60
"""Characters of a value in the words about it."""
_MOST_OBJECTS: Final = 5000
"""Objects read in one output: each takes about 10 µs to judge."""
_TRIES: Final = 16
"""Number of times that JSON is looked for behind a brace that begins none."""

Verdict: TypeAlias = Literal["", "allow", "ask", "deny"]

_BY_WEIGHT: Final[Sequence[Verdict]] = ("deny", "ask", "allow")
_BEHAVIOR: Final[Mapping[str, Verdict]] = {"allow": "allow", "deny": "deny"}
_ANSWER: Final[Mapping[str, Verdict]] = {"allow": "allow", "ask": "ask", "deny": "deny"}
_PERMISSION: Final[Mapping[str, Verdict]] = {**_ANSWER, "defer": "ask"}
"""A call that is left to whoever started the program is left to the person here."""
_DECISION: Final[Mapping[str, Verdict]] = {
    **_ANSWER, "approve": "allow", "block": "deny",
}  # fmt: skip
_OWN: Final = "hookSpecificOutput"
_REASON: Final = "permissionDecisionReason"
_FIELDS: Final = frozenset(
    {_OWN, "decision", "reason", "continue", "stopReason", "suppressOutput", "systemMessage"}
)
"""The keys by which an object is an answer and not only printed."""
_NAMES: Final = frozenset({"decision", "permissiondecision", "permissiondecisionreason"})
"""Keys that hold a decision, however they are written."""
_RESULTS: Final = ("updatedToolOutput", "updatedMCPToolOutput")
"""The keys under which a hook changes a result, the first goes before the other."""
_ECHOED: Final = frozenset({"tool_input", "tool_response", "updatedInput"})
"""The keys of data about a call, not the hook's own answer, though an answer's key may be in it."""
_TEXTS: Final = frozenset({"additionalContext", "reason", "stopReason", "systemMessage"})
"""Fields of an answer that may quote anything."""
SPEAKS: Final = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events whose hooks tell the model what they print."""
_JUDGES: Final = "PreToolUse"
"""The event whose hooks say no to a call."""
_REQUEST: Final = "PermissionRequest"
"""The event whose hooks answer in the person's place."""
_ENDS: Final = frozenset({"Stop", "SubagentStop"})
"""Events whose hooks hold a turn: there, not to continue is to let it end."""
# Texts, not patterns: compiling them takes 10 ms, and most sessions have no hooks.
_REFUSALS: Final = (
    r"(?:den(?:y|ied)|disallow(?:ed)?|forbid(?:den)?|block(?:ed)?|reject(?:ed)?|refused?)"
)
"""Words that are a decision under any key, such as the `permission` of other programs' hooks."""
_CONSENTS: Final = r"(?:allow(?:ed)?|approved?|permit(?:ted)?|accept(?:ed)?|ok|safe)"
_ABOUT: Final = r"(?:is|should|must|be|the|tool|command|call|action|request|use|execution)*"
_REFUSING: Final = f"{_ABOUT}{_REFUSALS}{_ABOUT}"
_CONSENTING: Final = f"{_ABOUT}{_CONSENTS}{_ABOUT}"
"""Keys that decide by yes or no, as `block` and `is_allowed`."""
_NOT: Final = frozenset({"", "0", "false", "never", "no", "none", "null", "off"})
_SAYS_NO: Final = rf"""(?imx)^[^\w\n]*+(?=[a-dfnoprstv])(?:
    (?:(?:permission|access|command|tool|call|operation|action|request)[ ](?:is[ ]|was[ ])?)?
        (?:(?-i:DENY|DENIED|BLOCK|BLOCKED|FORBIDDEN|REJECTED|REFUSED)\b
        |(?:{_REFUSALS}|not[ ](?:allowed|permitted)|(?:block|deny|refus|reject)ing)\b
            (?=[^\w\n]*$|[ ]?[^\w\s]|[ ](?:as|because|by|due|since|to)\b))
        (?![^\w\n]*(?:0|no|none|nothing|false|off)\b)
    |(?:action|answer|behavior|outcome|permission|response|result|status|verdict
        |(?:permission[_-]?)?decision)[^\w\n]{{1,9}}{_REFUSALS}[^\w\n]*$)"""
"""A line of plain text that says no."""
_KEY: Final = (
    r"""(?im)(?:["']|[{,]\s*)(?:(?:(?:permission[_-]?)?decision|hookSpecificOutput)\\*["']?\s*:"""
    r"""|continue\\*["']?\s*:\s*\\*["']?false\b)"""
    # As YAML, `key=value`, a printed object of another language, …
    r"""|decision[^\w\n.]{0,9}[:=>][^\w\n.]{0,9}(?:deny|denied|block|blocked)\b"""
    r"""|^continue\s*[:=]\s*false\b"""
)
_MARKED: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class HookReply:
    """The answer of one hook. `unclear` is why it cannot be relied on, "" if it can; `text` what
    the hook printed that is no answer, `notice` what it wants to be shown to the person; `changed`
    the input that a call gets instead of its own, `result` what its result becomes; `stops`: the
    turn is to end."""

    verdict: Verdict = ""
    reason: str = ""
    unclear: str = ""
    context: str = ""
    text: str = ""
    notice: str = ""
    changed: dict[str, Any] | None = None
    result: object = None
    stops: bool = False


NOTHING: Final = HookReply()


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine several verdicts into one."""
    given_verdicts = set(verdicts)
    for one in _BY_WEIGHT:
        if one in given_verdicts:
            return one
    return ""


class _Object(dict[str, Any]):
    """A JSON object that still knows keys which were given twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


@dataclass(frozen=True, slots=True)
class _Decision:
    """A decision of an answer, or why what looks like one is none."""

    verdict: Verdict = ""
    unclear: str = ""


def read(printed: bytes, event: str) -> HookReply:
    """Read a hook's answer to an event from the first `OUTPUT_MAX` bytes (and one more where there
    were any) of its output. Never raises."""
    text = _decoded(printed[:OUTPUT_MAX])
    is_context = event in SPEAKS and not text.startswith("{")
    objects, unread = _last_object(text) if is_context else _objects(text)
    decisions = [one for each in objects for one in _decisions(each, event)]
    unclear = [one.unclear for one in decisions if one.unclear]
    if len(printed) > OUTPUT_MAX:  # a decision may have been in what was cut
        unclear.append(f"it is longer than {OUTPUT_MAX // 1024} KiB and was cut")
    elif len(objects) == _MOST_OBJECTS:
        unclear.append(f"it holds {_MOST_OBJECTS:,} JSON objects or more")
    elif not is_context:
        unclear += _unclear(text, unread, event)
    verdict = strictest(one.verdict for one in decisions)
    reason = " ".join(filter(None, map(_reason, objects)))
    if verdict == "allow" and (unread or len(objects) > 1):
        # A call's own words may be among those that a hook prints: they allow nothing.
        verdict, reason = "ask", "A hook allows it, but printed other text around its answer."
    return HookReply(
        verdict,
        reason,
        "; ".join(dict.fromkeys(unclear)),
        "\n\n".join(filter(None, (string_of(_own(o).get("additionalContext")) for o in objects))),
        text if unread or not any(_FIELDS & one.keys() for one in objects) else "",
        "\n".join(_notices(objects)),
        _changed(objects),
        _result(objects),
        any(
            one.get("continue") is False or _answer(one).get("interrupt") is True for one in objects
        ),
    )


def _unclear(text: str, rest: str, event: str) -> Iterator[str]:
    """Yield the reasons why the text around the objects of an output may be a decision."""
    if text.startswith("{") and rest.startswith("{"):
        yield "it begins with { but isn't JSON"
    elif event not in SPEAKS and re.search(_KEY, rest):
        yield "it has a decision in a text that isn't JSON"
    elif event == _JUDGES and (match := re.search(_SAYS_NO, rest)):
        line = rest[match.start() :].lstrip().partition("\n")[0]
        yield f"it says {_shown(line)} in a text that isn't JSON"


def _decoded(data: bytes) -> str:
    """The text of an output: marked as UTF-16 or not, without the NULs that fill it where it
    isn't, and without colors (`jq -C` puts them between a key and its value)."""
    encoding = "utf-16" if data.startswith(_MARKED) else "utf-8"
    text = data.decode(encoding, "replace").replace("\0", "").lstrip("\ufeff")
    return without_colours(text).strip()


def _objects(text: str) -> tuple[list[_Object], str]:
    """The JSON objects in a text, and the text around them."""
    decoder = json.JSONDecoder(object_pairs_hook=_Object, parse_int=_number, strict=False)
    objects: list[_Object] = []
    between: list[str] = []
    at, tries = 0, 0
    while tries < _TRIES and len(objects) < _MOST_OBJECTS and (start := text.find("{", at)) >= 0:
        try:
            one, end = cast("tuple[_Object, int]", decoder.raw_decode(text, start))
        except (ValueError, RecursionError):
            tries, end = tries + 1, start + 1
            between.append(text[at:end])
        else:
            objects.append(one)
            between.append(text[at:start])
        at = end
    return objects, "".join([*between, text[at:]]).strip()


def _last_object(text: str) -> tuple[list[_Object], str]:
    """The answer that ends a text, on lines of its own, and the text before it."""
    end = len(text)
    for _ in range(_TRIES):
        start = text.rfind("\n{", 0, end) + 1
        if not start:
            break
        objects, unread = _objects(text[start:])
        if len(objects) == 1 and not unread and _FIELDS & objects[0].keys():
            return objects, text[:start].strip()
        end = start - 1
    return [], text


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) < 1000 else float(digits)


def _decisions(said: _Object, event: str) -> Iterator[_Decision]:
    """Yield the decisions of an object where Claude Code looks for them, and what looks like them
    elsewhere."""
    for key, value in said.pairs:
        if key == "decision":
            yield _known(key, value, _DECISION)
        elif key == "continue":
            unclear = "" if isinstance(value, bool) else f"its continue is {_shown(value)}"
            no = value is False and event not in _ENDS
            yield _Decision("deny" if no else "", unclear)
        elif key == _OWN and value is not None:
            yield from _permission(value, event)
        else:
            yield from _misplaced(key, value)


def _permission(own: object, event: str) -> Iterator[_Decision]:
    if not isinstance(own, _Object):
        yield _Decision(unclear=f"its {_OWN} is {_shown(own)} and no object")
        return
    target = own.get("hookEventName", event)
    if own.get(_REASON) and own.get("permissionDecision") is None:
        yield _Decision(unclear=f"its {_REASON} comes without a permissionDecision")
    for key, value in own.pairs:
        if key == _REASON or key in _RESULTS:
            continue
        if event == _REQUEST and key == "decision":
            answer = object_of(value)
            yield _known("behavior", answer.get("behavior", ""), _BEHAVIOR)
            continue
        if key != "permissionDecision":
            yield from _misplaced(key, value)
            continue
        one = _known(key, value, _PERMISSION)
        if target != event and one.verdict != "deny":
            one = _Decision(unclear=f"its {key} is for {_shown(target)}")
        yield one


def _known(key: str, value: object, words: Mapping[str, Verdict]) -> _Decision:
    if value is None:
        return _Decision()
    verdict = words.get(value, "") if isinstance(value, str) else ""
    known = ", ".join(words)
    return _Decision(verdict, "" if verdict else f"its {key} is {_shown(value)}, none of {known}")


def _misplaced(key: str, value: object) -> Iterator[_Decision]:
    """Decisions where none belongs."""
    left: list[tuple[str, object]] = [(key, value)]
    while left:
        name, inner = left.pop()
        if name in _ECHOED or (name in _TEXTS and isinstance(inner, str)):
            continue
        plain = re.sub(r"[\W_]", "", name).casefold()
        if plain in _NAMES or _says_no(plain, inner):
            yield _Decision(unclear=f"{name} ({_shown(inner)}) is not where a decision belongs")
        elif isinstance(inner, _Object):
            left += inner.pairs
        elif isinstance(inner, list):
            left += [("", one) for one in cast("list[object]", inner)]


def _says_no(key: str, value: object) -> bool:
    """Tell whether a field decides against something: by its value, by yes or no, or as a text with
    an answer in it, as services put the output of a program into their own."""
    text = value.strip() if isinstance(value, str) else ""
    word = text.casefold() if isinstance(value, str) else str(bool(value)).casefold()
    if re.fullmatch(_REFUSING, key) and word not in _NOT:
        return True
    if value is not None and word in _NOT - {""} and re.fullmatch(_CONSENTING, key):
        return True
    no = (key == "continue" and value is False) or re.fullmatch(_REFUSALS, text.casefold())
    return bool(no) or (text.startswith(("{", "[")) and re.search(_KEY, text) is not None)


def _own(said: _Object) -> dict[str, Any]:
    return object_of(said.get(_OWN))


def _reason(said: _Object) -> str:
    own = _own(said)
    answer = _answer(said).get("message")
    texts = (said.get("reason"), own.get(_REASON), answer, said.get("stopReason"))
    return next((one for one in texts if isinstance(one, str) and one), "")


def _answer(said: _Object) -> dict[str, Any]:
    """The answer in the person's place."""
    return object_of(_own(said).get("decision"))


def _notices(objects: Iterable[_Object]) -> Iterator[str]:
    for one in objects:
        if text := string_of(one.get("systemMessage")):
            yield text
        if _answer(one).get("updatedPermissions"):
            yield "it wants to add permission rules, which only you can do"


def _changed(objects: Sequence[_Object]) -> dict[str, Any] | None:
    """The last input that they want for a call: what is not an object is one that no tool takes."""
    places = [place for one in objects for place in (_own(one), _answer(one))]
    inputs = [place["updatedInput"] for place in places if "updatedInput" in place]
    if not inputs:
        return None
    return dict(inputs[-1]) if is_object(inputs[-1]) else {"updatedInput": inputs[-1]}


def _result(objects: Sequence[_Object]) -> object:
    """The last result that they want; None for none."""
    wanted = [_own(one).get(key) for one in objects for key in reversed(_RESULTS)]
    return next((one for one in reversed(wanted) if one is not None), None)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return shortened(text, _SHOWN)
