"""One request in plain English → one step. A rule is a pattern and what to make of it.

The rules are tried in the order in which they stand here. Patterns are verbose: blanks in them
mean nothing, `\\s` is a blank.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from tui.provider.practice.steps import (
    Append,
    Change,
    Create,
    Find,
    FixTests,
    Job,
    ListFolder,
    Mark,
    Read,
    Run,
    Search,
    Step,
    Talk,
    Think,
)

QUOTED = r"(?:```.+?```|`[^`\n]+`|\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w))"
PATH = rf"(?:{QUOTED}|@?[^\s,;:`\"“”]+)"
CREATE_HEAD = rf"""
    (?P<verb>create|write|overwrite|make|add|save|generate)\s+(?:me\s+)?(?:an?\s+|the\s+)?
    (?:new\s+|empty\s+|text\s+)*(?P<file>file\s+)?(?:called\s+|named\s+)?(?P<path>{PATH})"""
WITH = r"""
    (?:,?\s+(?:with|containing|saying|that\s+(?:says|contains|reads))\b
    (?:\s+(?:the\s+)?(?:following\s+)?(?:text|contents?|lines?|words?)\b)?)"""
OVERWRITING = {"write", "overwrite", "save", "put"}

_FILE = r"(?:the\s+)?(?:file\s+)?"
_IN_PATH = rf"""
    \s+(?:in|inside|under|within)\s+(?:the\s+)?(?:folder\s+|directory\s+|file\s+)?
    (?P<path>{PATH})(?:\s+(?:folder|directory))?"""
_OLD_NEW = rf"""
    (?:change|replace|rename|swap|substitute|turn)\s+
    (?P<all>(?:all|every|each)\s+(?:(?:occurrences?|instances?)\s+)?(?:of\s+)?)?
    (?P<old>{QUOTED}|.+?)\s+(?:to|with|by|into|->|=>|→)\s+(?P<new>{QUOTED}|.+?)"""
_EVERYWHERE = r"(?P<all_after>,?\s+(?:everywhere|throughout|all(?:\s+occurrences)?|globally))?"
_LONG_TEXT = 2000

_TALK: dict[Literal["hello", "help", "who", "thanks", "stop"], str] = {
    "hello": "hi|hello|hey|hallo|hi there|hello there|hey there|good morning|good evening",
    "help": "help|help me|?|what can you do|what can i do|what can i say|what do you understand"
    "|how does this work|how do you work|examples|commands",
    "who": "who are you|what are you|which model are you|what model are you|what is this"
    "|are you real|are you an ai|are you a bot|are you a model",
    "thanks": "thanks|thank you|thanks a lot|thank you very much|thx|cheers|great|nice|perfect",
    "stop": "stop|never mind|nevermind|cancel|cancel that|forget it|abort|no|wait",
}
_PHRASES = {phrase: Talk(kind) for kind, words in _TALK.items() for phrase in words.split("|")}
_LEAD_IN = re.compile(
    r"""(?:please|pls|ok(?:ay)?|now|so|and|then|also|first(?:ly)?|next|finally|after\sthat|just
    |hey|hi|hello|(?:can|could|would|will)\syou|i(?:'d|\swould)\slike(?:\syou)?\sto
    |i\s(?:want|need)(?:\syou)?\sto|let(?:'s|\sus)|go\sahead\sand|try\sto|[-*•]|\d+[.)])[,:!\s]+""",
    re.IGNORECASE | re.VERBOSE,
)
_LEAD_OUT = re.compile(r"[,\s]+(?:please|for me|thanks|thank you)[.!]*$", re.IGNORECASE)
_PLAIN_FILES = {"makefile", "dockerfile", "license", "readme", "changelog", "justfile", "notice"}
_HERE = {"code", "project", "repo", "repository", "workspace", "files", "here", "everything"}
_FILE_KINDS = {
    "python": "*.py", "markdown": "*.md", "toml": "*.toml", "json": "*.json", "yaml": "*.y*ml",
    "text": "*.txt", "test": "test_*", "javascript": "*.js", "typescript": "*.ts", "rust": "*.rs",
}  # fmt: skip

_Make: TypeAlias = Callable[["re.Match[str]", bool], "Step | None"]
_RULES: list[tuple[re.Pattern[str], _Make]] = []


def parse(text: str, *, strict: bool = False) -> Step | None:
    """One step, or None. `strict` takes a bare word for a path only if it looks like one."""
    text = text.strip()
    if (phrase := _phrase(text)) is not None:
        return phrase
    text = _LEAD_OUT.sub("", without_lead_in(text))
    if (phrase := _phrase(text)) is not None:
        return phrase
    # Without the full stop of a sentence; `ls .` and `..` keep theirs.
    text = re.sub(r"(?<=[\w`\"”')*])[.!?,:;]$", "", text.strip())
    for pattern, make in _RULES:
        # Only these take time that does not grow faster than the text.
        if len(text) > _LONG_TEXT and make is not _create:
            continue
        if (found := pattern.fullmatch(text)) and (step := make(found, strict)):
            return step
    return None


def without_lead_in(text: str) -> str:
    """A request without the polite words and list marks before it."""
    while found := _LEAD_IN.match(text):
        text = text[found.end() :]
    return text


def unquote(text: str) -> str:
    """A quoted text or code span without its marks; other text as it is."""
    text = text.strip()
    if fence := re.fullmatch(r"```[^\n]*\n(.*?)\n?```", text, re.DOTALL):
        return fence[1]
    if len(text) >= 2 and text[0] + text[-1] in {'""', "''", "``", "“”"}:
        inner = text[1:-1]
        return inner.replace("\\n", "\n").replace("\\t", "\t") if text[0] == '"' else inner
    return text


def path_of(text: str, *, strict: bool = True) -> str:
    """A path that somebody wrote, or "" for a word that is none."""
    bare = unquote(text).removeprefix("@").strip()
    looks = (
        is_quoted(text)
        or text.startswith(("@", "~", "."))
        or "/" in bare
        or bare.lower() in _PLAIN_FILES
        or re.search(r"\w\.\w+$", bare)
    )
    return bare if looks or (not strict and re.fullmatch(r"[\w.+-]+", bare)) else ""


def is_quoted(text: str) -> bool:
    return re.fullmatch(QUOTED, text.strip(), re.DOTALL) is not None


def with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _phrase(text: str) -> Talk | None:
    return _PHRASES.get(text.strip(" .!,").lower()) or _PHRASES.get(text.strip(" .!?,").lower())


def _folder(path: str | None) -> str:
    return "." if not path or path.lower() in _HERE else unquote(path).removeprefix("@")


def _rule(pattern: str) -> Callable[[_Make], _Make]:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL | re.VERBOSE)

    def add(make: _Make) -> _Make:
        _RULES.append((compiled, make))
        return make

    return add


@_rule(
    r"""(?:fix|repair|debug|solve|investigate)\s+(?:(?:the|my|our|a)\s+)?
    (?:(?:failing|broken|red)\s+)?(?:unit\s+)?tests?(?:\s+failures?)?
    |why\s+(?:do|does|are|is)\s+(?:(?:the|my)\s+)?tests?\s+(?:fail(?:ing)?|red|broken)
    |make\s+the\s+tests\s+pass
    |run\s+(?:all\s+)?(?:(?:the|my|our)\s+)?tests?,?\s+and\s+fix\b.*"""
)
def _fix_tests(_found: re.Match[str], _strict: bool) -> Step | None:
    return FixTests()


@_rule(
    r"""(?:run|execute)\s+(?:all\s+)?(?:(?:the|my|our)\s+)?(?:unit\s+)?tests?(?:\s+suite)?
    |test\s+(?:it|this)"""
)
def _run_tests(_found: re.Match[str], _strict: bool) -> Step | None:
    return Run("pytest -q")


@_rule(r"think(?:\s+hard(?:er)?|\s+deeply)?\s+(?:about|through|over)\s+(?P<topic>.+)")
def _think(found: re.Match[str], _strict: bool) -> Step | None:
    return Think(found["topic"])


@_rule(
    r"""(?P<verb>check(?:\s+on)?|status\s+of|wait\s+for|stop|kill|show|look\s+at)\s+(?:the\s+)?
    (?:background\s+)?(?:(?:job|command)\s+\#?(?P<job>[\w-]+)|(?P<id>job-\d+))
    |(?P<every>(?:list\s+|show\s+)?(?:the\s+)?(?:background\s+)?jobs)"""
)
def _job(found: re.Match[str], _strict: bool) -> Step | None:
    if found["every"]:
        return Job("", "read")
    verb, job = found["verb"].lower(), found["job"] or found["id"]
    job = f"job-{job}" if job.isdigit() else job
    if verb in {"stop", "kill"}:
        return Job(job, "stop")
    return Job(job, "wait" if verb.startswith("wait") else "read")


@_rule(
    r"""(?:mark|tick(?:\s+off)?|check\s+off|complete|finish)\s+(?:(?:step|task|todo|item)\s+)?
    \#?(?P<number>\d{1,3})(?:\s+(?:as\s+)?
    (?P<status>done|completed?|finished|in\s+progress|started|pending|open))?"""
)
def _mark(found: re.Match[str], _strict: bool) -> Step | None:
    status = (found["status"] or "done").lower()
    if status.startswith(("in", "started")):
        return Mark(int(found["number"]), "in_progress")
    return Mark(int(found["number"]), "pending" if status in {"open", "pending"} else "completed")


@_rule(rf"in\s+{_FILE}(?P<path>{PATH}),?\s+{_OLD_NEW}{_EVERYWHERE}")
@_rule(rf"{_OLD_NEW}\s+in\s+{_FILE}(?P<path>{PATH}){_EVERYWHERE}")
@_rule(
    rf"""(?:remove|delete|drop)\s+(?P<all>(?:all|every)\s+(?:occurrences?\s+of\s+)?)?
    (?:the\s+(?:text|line|word)\s+)?(?P<old>{QUOTED}|.+?)(?P<new>)\s+(?:in|from)\s+
    {_FILE}(?P<path>{PATH}){_EVERYWHERE}"""
)
def _change(found: re.Match[str], _strict: bool) -> Step | None:
    path, old = path_of(found["path"]), unquote(found["old"])
    everywhere = bool(found["all"] or found["all_after"])
    return Change(old, unquote(found["new"]), path, everywhere) if path and old else None


@_rule(
    rf"""(?P<verb>append|add|write|put|save)\s+(?:(?:the|a)\s+)?(?:(?:line|text)\s+)?
    (?P<content>{QUOTED}|.+?)\s+(?:to|into|in)\s+(?P<end>the\s+end\s+of\s+)?
    (?:(?:the|a)\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?P<path>{PATH})"""
)
@_rule(rf"(?P<verb>append)\s+to\s+(?P<end>)(?P<path>{PATH})\s*:\s*(?P<content>.+)")
def _write_to(found: re.Match[str], _strict: bool) -> Step | None:
    path, text = path_of(found["path"]), unquote(found["content"])
    if not path:
        return None
    if found["verb"].lower() in {"append", "add"} or found["end"]:
        return Append(text, path)
    return Create(path, with_newline(text), overwrite=True)


@_rule(rf"{CREATE_HEAD}(?:(?:{WITH}\s*:?|\s*:)\s*(?P<content>.*))?")
def _create(found: re.Match[str], strict: bool) -> Step | None:
    path = path_of(found["path"], strict=strict or not found["file"])
    content = with_newline(unquote(found["content"] or ""))
    return Create(path, content, found["verb"].lower() in OVERWRITING) if path else None


@_rule(
    rf"""(?P<verb>run|execute|exec|start|launch)\s*:?\s+(?:the\s+)?(?:command\s+)?
    (?P<command>{QUOTED}|.+?)(?P<background>\s+in\s+(?:the\s+)?background|\s*&)?"""
)
def _run(found: re.Match[str], _strict: bool) -> Step | None:
    command, background = found["command"].strip(), bool(found["background"])
    if found["verb"].lower() in {"start", "launch"} and not (background or is_quoted(command)):
        return None
    return Run(unquote(command), background)


@_rule(
    rf"""(?:list|ls|dir)(?:\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?
    (?:files|folders?|director(?:y|ies)|contents?|everything|entries)\b)?
    (?:\s+(?:in|of|under|inside|at))?
    (?:\s+(?:the\s+)?(?:folder\s+|directory\s+)?(?P<path>{PATH}))?(?:\s+(?:folder|directory|dir))?"""
)
@_rule(
    rf"""(?:show|see|what)\s+(?:me\s+)?(?:are\s+)?(?:all\s+)?(?:the\s+)?
    (?:files|folders?|director(?:y|ies))(?:\s+(?:are|is)(?:\s+there)?)?(?:\s+(?:here|there))?
    (?:\s+(?:in|under|of)\s+(?:the\s+)?(?:folder\s+)?(?P<path>{PATH}))?"""
)
def _list(found: re.Match[str], strict: bool) -> Step | None:
    folder = _folder(found["path"])
    if folder.startswith("-"):
        return None
    if re.search(r"[*?]", folder):
        return Find(folder)
    path = folder if folder == "." else path_of(found["path"], strict=strict)
    return ListFolder(path) if path else None


@_rule(
    rf"""(?P<verb>read|open|show|cat|view|display|print|summari[sz]e|explain|describe
    |look\s+(?:at|into)|check\s+out|what(?:'s|\s+is)\s+in)\s+
    (?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:files?\s+)?
    (?P<paths>{PATH}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){PATH})*)(?:\s+file)?
    (?:,?\s+(?:from\s+|at\s+|starting\s+at\s+)?lines?\s+(?P<first>\d{{1,9}})
    (?:\s*(?:-|–|to|through)\s*(?P<last>\d{{1,9}}))?)?
    (?:,?\s+and\s+(?:say|tell\s+me|explain|describe|summari[sz]e|report)\b.*)?"""
)
def _read(found: re.Match[str], strict: bool) -> Step | None:
    parts = re.findall(PATH, re.sub(r"\s+and\s+|,", " ", found["paths"]))
    strict = strict or len(parts) > 1
    strict = strict or found["verb"].lower() not in {"read", "cat", "open", "view"}
    paths = tuple(path_of(part, strict=strict) for part in parts)
    first, last = (int(found[name]) if found[name] else None for name in ("first", "last"))
    if not paths or not all(paths) or (last is not None and first is not None and last < first):
        return None
    return Read(paths, max(first, 1) if first is not None else None, last)


@_rule(
    rf"""(?:find|locate)\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?(?P<kind>files?\s+)?
    (?:(?:named|called|matching|like)\s+)?(?P<what>{QUOTED}|.+?)(?P<after>\s+files?)?
    (?:{_IN_PATH})?"""
)
def _find(found: re.Match[str], strict: bool) -> Step | None:
    what, path = found["what"].strip(), _folder(found["path"])
    name = unquote(what)
    words = name.lower().split()
    for_files = bool(found["kind"] or found["after"])
    if words and words[0] in _FILE_KINDS and (found["after"] or words[-1] in {"files", "tests"}):
        return Find(_FILE_KINDS[words[0]], path)
    globbed = re.search(r"[*?\[]", name) is not None
    if " " not in name and (globbed or for_files or path_of(what)):
        if re.fullmatch(r"\.\w{1,6}", name):
            return Find(f"*{name}", path)
        return Find(name if globbed or "." in name else f"*{name}*", path)
    if found["kind"] or (strict and not is_quoted(what) and len(words) > 3):
        return None
    return Search(name, path)


@_rule(
    rf"""(?:search|grep|scan|rg|look)
    (?:\s+(?:(?:the|this)\s+)?(?:code|project|files|repo(?:sitory)?|workspace))?(?:\s+for)?\s+
    (?:(?:all\s+)?(?:the\s+)?(?:text|word|string|phrase)\s+)?(?P<text>{QUOTED}|.+?)(?:{_IN_PATH})?"""
)
@_rule(
    rf"""where\s+(?:is|are)\s+(?P<text>{QUOTED}|\S+)(?:\s+(?:used|defined|called|set))?(?P<path>)"""
)
def _search(found: re.Match[str], strict: bool) -> Step | None:
    text, path = found["text"].strip(), _folder(found["path"])
    if strict and not is_quoted(text) and len(text.split()) > 3:
        return None
    if regex := re.fullmatch(r"/(.+)/", text):
        return Search(regex[1], path, regex=True)
    return Search(unquote(text), path)


@_rule(
    r"""(?P<command>(?:git|pytest|npm|pnpm|yarn|cargo|ruff|python3?|uv|ls|make|pwd|whoami|echo)
    (?:\s+[-\w./"'].*)?)"""
)
def _bare_command(found: re.Match[str], _strict: bool) -> Step | None:
    """A command typed as it is. Prose ("make me happy") is none."""
    command = found["command"]
    name, *rest = command.split()
    prose = name == "make" and (len(rest) > 1 or "me" in rest)
    return None if prose or name != name.lower() or "\n" in command else Run(command)


@_rule(r"what(?:'s|\s+is)\s+(?:this|the)\s+(?:project|repo(?:sitory)?)(?:\s+about|\s+for)?")
@_rule(r"(?:explain|describe|summari[sz]e)\s+(?:this|the)\s+(?:project|repo(?:sitory)?)")
def _about(_found: re.Match[str], _strict: bool) -> Step | None:
    return Read(("README.md",))


@_rule(PATH)
def _lone_path(found: re.Match[str], strict: bool) -> Step | None:
    path = "" if strict else path_of(found[0])
    named = found[0].startswith("@") or re.search(r"\w{2}\.[A-Za-z]\w*$", path)
    return Read((path,)) if path and named else None
