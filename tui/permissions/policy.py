"""The policy: rules, grants and modes as data, and the decision as a pure function of them.

The order, first answer wins: always blocked · outside the workspace · the program's own files ·
deny rules · plan mode · [ask rules · allow rules · what was granted in this session · accepted
edits · auto-granted folders · reads · safe commands · ask]. Elevated turns an ask of the part in
brackets into an allow, and nothing else.

Where a sandbox confines commands, the decision says to which level. Nobody is asked about a command
that runs read-only, whatever it is: the walls decide. Without a sandbox, a command is safe if it is
plain (`plain_command`), and everything else asks.

A web address asks in every mode but elevated: it is sent to its host, with everything in it. One
that has a key in it is refused. The decision says if it may lead into the person's own network:
because a rule names it, or because the person saw it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ToolError
from tui.core.formatting import shortened
from tui.core.redaction import mask
from tui.core.web_address import WebAddress
from tui.core.workspace import PRIVATE_DIR, Workspace
from tui.permissions.parsed_command import Invocation, ShellWord, SimpleCommand, invocation
from tui.permissions.path_risk import real_path
from tui.permissions.reading_rules import (
    ReadingRules,
    denied_places,
    is_in,
    is_opened,
    rules_on_reading,
)
from tui.permissions.risk_tiers import (
    CONNECTS,
    DESTROYERS,
    FOR_THE_SYSTEM,
    INSTALL_PROGRAMS,
    INSTALLERS,
    RECURSIVE,
    SSH_ADDRESS,
)
from tui.permissions.rules import (
    COMMANDS,
    GUARDED,
    Line,
    Rule,
    RuledPath,
    git_settings_from_elsewhere,
    matching_rule,
    parse_all,
    path_forms,
    rule_allowing_command,
    rule_allowing_path,
    rule_allowing_url,
    rule_naming_program,
)
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Call, Decision, Mode, TypedInput

if TYPE_CHECKING:
    from tui.permissions.risk import CommandPart, RiskVerdict

_READING_TOOLS = frozenset({"read_file", "grep_search", "edit_file", "apply_patch", "recall"})
"""Tools that show the content of an existing file, in part at least where something fails."""
_SHOWN_CHARS = 60
_INPUT_ASKS = "A single yes doesn't cover its input."
_IN_SESSION = "You allowed this for this session."
_EDITED = "keys, earlier input or its length change the line, so only the shell knows it"
_COMMAND_TOOLS = ("terminal", COMMANDS)
_HAS: Mapping[Level, str] = {
    Level.READ_ONLY: "can read files",
    Level.WORKSPACE: "can change files in the workspace",
    Level.NETWORK: "has network",
}
"""The abilities of a terminal behind walls."""
_NO_NETWORK = frozenset({Level.READ_ONLY, Level.WORKSPACE})
_WRITES = frozenset({Level.WORKSPACE, Level.NETWORK})
_CHANGES_FILES = frozenset({"git", "find", *DESTROYERS, *RECURSIVE})
"""High-risk programs that need nothing but the files of the project."""
_OWN = frozenset({"config.toml", "tool-results", "plans", "run", ".gitignore"})
"""The files in `.holdfast/` that only the program writes."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The person's rules and the facts by which calls are judged.

    `auto_grant` are patterns of folders whose files may be written without a question. `private`
    are the program's own folders, which no tool reads or writes; the first has its key. `lost`: not
    all of the person's rules could be read, so nothing is elevated.
    """

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    auto_grant: tuple[str, ...] = ()
    home: Path = field(default_factory=Path.home)
    private: tuple[Path, ...] = ()
    lost: bool = False

    @classmethod
    def of(
        cls,
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        auto_grant: Iterable[str] = (),
        private: Iterable[Path] = (),
    ) -> Policy:
        """Build a policy from the texts of rules. Raises UsageError that names a bad one."""
        return cls(
            allow=parse_all(allow, allow=True),
            ask=parse_all(ask),
            deny=parse_all(deny),
            auto_grant=tuple(auto_grant),
            private=tuple(map(real_path, private)),
        )

    def reading(self, workspace: Workspace, *, elevated: bool = False) -> ReadingRules:
        """The rules on reading files; elevated, none asks."""
        return ReadingRules.of(
            deny=self.deny,
            ask=() if elevated else self.ask,
            workspace=workspace,
            home=self.home,
            private=self.private,
        )

    def reads_freely(self, workspace: Workspace) -> Callable[[Path], bool]:
        """Return what tells if a real path may be read without a question."""
        rules = self.reading(workspace)
        return lambda path: rules.answer(path) == "allow"

    def denied_places(self, root: Path) -> tuple[Path, ...]:
        """The places that the walls hide from commands because rules deny reading them."""
        return denied_places(self.deny, (), root, self.home) or ()

    def walls_hold(self, root: Path) -> bool:
        """True if walls can enforce the rules on reading for commands."""
        return denied_places(self.deny, self.ask, root, self.home) is not None


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission that the person gave for this session.

    With `rules` it covers what they match, up to standard risk. With `subject` it covers this very
    call (the same command in the same folder, the same path), whatever its risk, and precedes the
    ask rules.
    """

    tool: str
    rules: tuple[Rule, ...] = ()
    subject: str | None = None
    paths: tuple[str, ...] = ()
    level: Level = Level.OUTSIDE
    """The level of this very call; a rule has its own."""
    command: str = ""
    """The person's own slash command whose turn has it, "" if they said yes themselves."""

    @property
    def shown(self) -> tuple[Rule, ...]:
        """The calls that it covers, as rules."""
        if self.subject is None:
            return self.rules
        return (Rule.exactly(self.tool, self.subject) if self.subject else Rule(self.tool),)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts about a call that a decision depends on."""

    call: Call
    verdict: RiskVerdict | None
    """The risk of its command; None for every other tool."""
    real: tuple[Path, ...]
    """The paths that it names, with links followed."""
    forms: tuple[str, ...]
    """The texts by which rules may name it."""
    ruled: tuple[RuledPath, ...] = ()
    """Its paths as rules see them; its subject if it names none."""
    line: Line = None
    root: Path = Path("/")
    """The workspace, to which rules on paths are relative."""

    @property
    def guarded(self) -> str:
        """The guarded folder that it names, "" if none: see `GUARDED`."""
        return next((path.guarded for path in self.ruled if path.guarded), "")


def decide(
    call: Call,
    policy: Policy,
    *,
    mode: Mode,
    elevated: bool,
    grants: Iterable[Grant],
    workspace: Workspace,
    holds: Collection[Level] = (),
) -> Decision:
    """Decide if a call may run, must be asked about, or is refused, and why.

    `holds` are the levels that a sandbox confines commands to; none if there is no sandbox. A
    command that would get a level which is not among them gets no walls.
    """
    elevated = elevated and not policy.lost
    workspace = workspace.widen(elevated or workspace.widened)
    try:
        facts = examine(call, policy, workspace)
    except ToolError as error:
        return Decision("deny", str(error), "workspace")
    # Refusals come first: nothing below can lift them.
    refused = _refused(facts, policy, mode, holds, workspace)
    if refused is not None:
        return refused
    if call.types is not None:
        given = tuple(grants)
        free = elevated or _would_start(call.types, policy, mode, given, workspace)
        return _typed(facts, call.types, policy, mode, given, elevated=elevated, free=free)
    decision = _allowed(facts, policy, mode, tuple(grants), workspace)
    inside = workspace.widen(False)
    # An allowed call that leaves the workspace is only possible elevated, which its reason must
    # say.
    beyond = next((path for path in facts.real if not inside.contains(path)), None)
    if decision.answer == "allow" and beyond:
        by = decision.by if call.effect == "run" else "elevated"
        why = f"Elevated: {beyond} is outside the workspace."
        decision = replace(decision, reason=why, by=by)
    # Without walls that confine writing, allowing a level that writes would allow everything.
    if holds and decision.answer == "allow" and decision.level in _WRITES.difference(holds):
        why = "The sandbox on this machine only confines commands that write nothing."
        decision = replace(decision, answer="ask", reason=why, by="default")
    free = elevated and mode != "plan"
    if facts.verdict is not None and not facts.verdict.named and holds and not free:
        decision = _behind_walls(decision, facts, policy, mode, holds)
    # Elevation only turns an ask into an allow.
    if decision.answer == "ask" and elevated:
        decision = replace(decision, answer="allow", by="elevated", level=Level.NETWORK)
    if free and decision.answer == "allow" and decision.level is Level.WORKSPACE:
        decision = replace(decision, level=Level.NETWORK)
    if call.effect == "fetch":
        private = decision.by != "elevated" and _may_be_private(call, policy)
        return replace(decision, private=private)
    level = decision.level if decision.level in holds else Level.OUTSIDE
    walls = bool(holds) and facts.verdict is not None
    if call.tool == "terminal" and decision.answer == "ask" and walls and not decision.once:
        decision = replace(decision, reason=f"{decision.reason} {_INPUT_ASKS}")
    return replace(decision, level=level, walls=walls, paths=facts.real)


def input_to(terminal: str) -> str:
    """Name what a lasting yes to input covers: all that is typed into that terminal."""
    return f"all input to {terminal}"


def _typed(
    facts: CallFacts,
    typed: TypedInput,
    policy: Policy,
    mode: Mode,
    grants: Sequence[Grant],
    *,
    elevated: bool,
    free: bool,
) -> Decision:
    """Decide about input into a terminal. Where walls hold whatever is typed, it is `free` if such
    a terminal could be started now without a question. All else asks, unless the person lets it be
    typed there for the session. A line that a shell gets asks as a command does where its risk is
    high."""
    call, verdict = facts.call, facts.verdict
    risk = verdict.risk if verdict else None
    confined = typed.level is not Level.OUTSIDE
    marks = tuple(part.text for part in verdict.worst) if verdict else ()

    def answer(
        answer: Literal["allow", "ask", "deny"], why: str, by: str, *, once: bool = False
    ) -> Decision:
        level = typed.level
        return Decision(answer, why, by, risk, level, walls=confined, marks=marks, once=once)

    if mode == "plan" and typed.level is not Level.READ_ONLY:
        return answer("deny", "Plan mode is read-only: nothing is typed into a terminal.", "plan")
    if elevated:
        return answer("allow", "Elevated.", "elevated")
    if unseen := _unseen(facts, policy) or _edited(typed, policy):
        return answer("ask", *unseen, once=True)
    if rule := matching_rule(policy.ask, call, verdict, facts.forms):
        return answer("ask", f"The rule {rule} asks. {_reason(facts)}", str(rule), once=True)
    if risk == "high-risk":
        return answer("ask", _reason(facts), "default", once=True)
    if confined and free:
        return answer("allow", f"Stays behind the walls of {typed.terminal}.", "sandbox")
    this = call.tool, input_to(typed.terminal), (typed.place,)
    if this in ((grant.tool, grant.subject, grant.paths) for grant in grants):
        return answer("allow", _IN_SESSION, "session")
    if confined:
        what = f"{typed.terminal} {_HAS[typed.level]}, so each input asks"
        return answer("ask", f"{what} until you allow all of it for this session.", "default")
    why = f"Nothing confines {typed.terminal}: input there can do all that you can do."
    return answer("ask", why, "default")


def _edited(typed: TypedInput, policy: Policy) -> tuple[str, str] | None:
    """Explain why only a person can allow a line that keys have edited, and the source of that;
    None for another line, and where walls are enough."""
    if not typed.edited:
        return None
    rule = next((rule for rule in policy.deny if any(map(rule.names, _COMMAND_TOOLS))), None)
    if rule is not None:
        return f"Can't tell whether the rule {rule} forbids this: {_EDITED}.", str(rule)
    if typed.level in _NO_NETWORK:
        return None
    return f"{_EDITED[0].upper()}{_EDITED[1:]}.", "default"


def _would_start(
    typed: TypedInput,
    policy: Policy,
    mode: Mode,
    grants: Sequence[Grant],
    workspace: Workspace,
) -> bool:
    """True if a terminal with the same walls could be started now without a question: a yes to it
    counted once, and the mode in which it was started may be over."""
    if typed.began is None or typed.level is Level.OUTSIDE:
        return False
    now = decide(
        typed.began,
        policy,
        mode=mode,
        elevated=False,
        grants=grants,
        workspace=workspace,
        holds=tuple(_HAS),
    )
    levels = list(Level)
    return now.answer == "allow" and levels.index(now.level) >= levels.index(typed.level)


def examine(call: Call, policy: Policy, workspace: Workspace) -> CallFacts:
    """Collect the facts that a decision needs. Raises ToolError for a path outside the
    workspace."""
    if call.effect == "fetch":
        # A rule that forbids may name the host alone.
        return CallFacts(call, None, (), (call.subject, WebAddress.parse(call.subject).origin))
    paths = tuple(workspace.resolve(path) for path in call.paths)
    if call.command is None:
        ruled = tuple(
            RuledPath(path_forms(path, workspace, policy.home), _guarded(path, workspace))
            for path in paths
        ) or (RuledPath((call.subject,)),)
        forms = tuple(form for path in ruled for form in path.forms)
        return CallFacts(call, None, paths, forms, ruled)
    folder = paths[0] if paths else workspace.root
    verdict, line = _examine_command(call.command, folder, policy, workspace)
    return CallFacts(call, verdict, paths, (call.command,), line=line, root=workspace.root)


def _examine_command(
    command: str, folder: Path, policy: Policy, workspace: Workspace
) -> tuple[RiskVerdict, Line]:
    """Judge a command, and read it in plain words if it is written so."""
    from tui.permissions.plain_command import (  # noqa: PLC0415 - start-up stays light
        ReadableArea,
        parse,
        reasons_to_ask,
    )
    from tui.permissions.risk import classify  # noqa: PLC0415 - as above

    area = ReadableArea(workspace, policy.private)
    verdict = classify(command, area, home=policy.home, cwd=folder)
    line = None
    if (plain := parse(command)) is not None:
        line = tuple(zip(plain, reasons_to_ask(plain, folder, area), strict=True))
    why = "what it reads or changes is only known when it runs"
    if line is not None:
        why = next((why for _, why in line if why), "")
    # Names alone don't make a command safe: only one in plain words surely does no more.
    if verdict.risk == "safe" and why:
        verdict = replace(verdict, risk="standard", reason=why)
    return verdict, line


def _refused(
    facts: CallFacts, policy: Policy, mode: Mode, holds: Collection[Level], workspace: Workspace
) -> Decision | None:
    """Decide the refusals that no grant, no rule and no elevation can lift."""
    call, verdict = facts.call, facts.verdict
    risk = verdict.risk if verdict else None
    if verdict is not None and verdict.risk == "blocked":
        return Decision("deny", f"Always blocked: {verdict.reason}.", "blocked", risk)
    if verdict is None and (why := _own_files(facts, policy, workspace)):
        return Decision("deny", why, "protected")
    if call.effect == "fetch" and (mask(call.subject)[1] or mask(unquote(call.subject))[1]):
        why = "The address contains a key or token, which would be sent to its host."
        return Decision("deny", why, "secret")
    if rule := matching_rule(policy.deny, call, verdict, facts.forms):
        return Decision("deny", f"Denied by the rule {rule}.", str(rule), risk)
    if rule := _denied_reading(facts, policy, workspace):
        what = "its words name" if call.command is not None else "it is"
        why = f"Denied by the rule {rule}: {what} a file that isn't read."
        return Decision("deny", why, str(rule), risk)
    # A denied program named in words that only the shell understands may well be run.
    if _hides_words(facts) and (rule := rule_naming_program(policy.deny, call)):
        why = f"Denied by the rule {rule}: the command may run that program."
        return Decision("deny", why, str(rule), risk)
    looks = risk == "safe" or _tried(facts, policy, holds) or _is_temporary(facts, workspace)
    if mode == "plan" and call.effect in {"write", "run"} and not looks:
        return Decision("deny", "Plan mode is read-only: nothing is written or run.", "plan", risk)
    return None


def _hides_words(facts: CallFacts) -> bool:
    """True if the words of a command do not show everything that it runs."""
    if facts.call.command is None or facts.verdict is None:
        return False
    hidden = any(part.hidden for part in facts.verdict.parts)
    return facts.line is None or hidden or git_settings_from_elsewhere(facts.call.command)


def _unseen(facts: CallFacts, policy: Policy) -> tuple[str, str] | None:
    """Explain why only a person can allow a command: it is unknown which programs it runs, and a
    rule forbids some. Also returns that rule."""
    parts = facts.verdict.parts if facts.verdict is not None else ()
    why = next((part.unseen for part in parts if part.unseen), "")
    tools = (facts.call.tool, COMMANDS)
    rule = next((rule for rule in policy.deny if why and any(map(rule.names, tools))), None)
    if rule is None:
        return None
    return f"Can't tell whether the rule {rule} forbids this: {why}.", str(rule)


def _allowed(
    facts: CallFacts, policy: Policy, mode: Mode, grants: tuple[Grant, ...], workspace: Workspace
) -> Decision:
    call, verdict = facts.call, facts.verdict
    risk = verdict.risk if verdict else None
    reason = _reason(facts)
    marks = tuple(part.text for part in verdict.worst) if verdict else ()

    def allow(why: str, by: str, level: Level = Level.OUTSIDE) -> Decision:
        return Decision("allow", why, by, risk, level)

    # A yes to this very call precedes the ask rules.
    this = call.tool, call.subject, call.paths
    for grant in grants:
        if (grant.tool, grant.subject, grant.paths) == this:
            why = "You allowed exactly this for this session."
            return allow(why, "session", grant.level)
    needed = needed_level(facts)
    if unseen := _unseen(facts, policy):
        return Decision("ask", *unseen, risk, needed, marks=marks, once=True)
    if rule := matching_rule(policy.ask, call, verdict, facts.forms):
        why = f"The rule {rule} asks. {reason}"
        return Decision("ask", why, str(rule), risk, needed, marks=marks)
    if rule := _allowing_rule(policy.allow, facts):
        return allow(f"Allowed by the rule {rule}.", str(rule), _reach(policy.allow, facts))
    # Grants of one source count together: the person's own, then each command's.
    for command in dict.fromkeys(("", *(grant.command for grant in grants))):
        own = (one for one in grants if one.subject is None and one.command == command)
        granted = tuple(rule for grant in own for rule in grant.rules)
        if _allowing_rule(granted, facts, explicit=False):
            level = _reach(granted, facts, explicit=False)
            why = f"/{command} allows this in its turn." if command else _IN_SESSION
            return allow(why, "command" if command else "session", level)
    if call.effect == "write" and (free := _free_write(facts, policy, mode, workspace)):
        return allow(*free)
    if call.effect in {"none", "read"}:
        return allow("Read-only, inside the workspace.", "reads")
    if risk == "safe" and not _restricted(facts.line, policy):
        return allow("Read-only.", "safe", Level.READ_ONLY)
    return Decision("ask", reason, "default", risk, needed, marks=marks)


def needed_level(facts: CallFacts) -> Level:
    """The level that a yes to a command gives it: a high-risk one mostly needs what no level
    provides."""
    verdict = facts.verdict
    if verdict is None or not verdict.named:
        return Level.WORKSPACE
    worst = [part for part in verdict.worst if not part.hidden]
    if worst and all(part.reason == CONNECTS for part in worst):
        return Level.NETWORK
    # Installers need the network, and more if they change the system.
    risky = [[called.name, *(word.text for word in called.args)] for called in map(_called, worst)]
    if risky and all(words[0] in INSTALLERS for words in risky):
        return Level.OUTSIDE if any(map(_for_the_system, risky)) else Level.NETWORK
    within = all(words[0] in _CHANGES_FILES for words in risky)
    reaches = any(words[0] == "git" and _reaches(words) for words in risky)
    return Level.WORKSPACE if risky and within and not reaches else Level.OUTSIDE


def _for_the_system(words: Sequence[str]) -> bool:
    """True if an installer is told to change something outside the project."""
    programs = words[0] in INSTALL_PROGRAMS and "install" in words[1:2]
    return programs or not FOR_THE_SYSTEM.isdisjoint(words)


def _reaches(words: list[str]) -> bool:
    """True if git needs more than the repository: keys, or settings that run programs."""
    return words[1:2] in (["push"], ["send-email"], ["config"]) or any(
        map(SSH_ADDRESS.match, words)
    )


def _called(part: CommandPart) -> Invocation:
    """The program of a part, however it is spelled."""
    words = tuple(map(ShellWord, part.text.split() or [""]))
    return invocation(SimpleCommand(words, part.text, None))


def _behind_walls(
    decision: Decision, facts: CallFacts, policy: Policy, mode: Mode, holds: Collection[Level]
) -> Decision:
    """Adjust a decision to walls that are enough to run the command without asking."""
    if mode == "plan":
        decision = replace(decision, level=Level.READ_ONLY)
    if decision.answer != "ask" or decision.by != "default":
        return decision
    if not policy.walls_hold(facts.root):
        return decision
    if mode == "accept_edits" and Level.WORKSPACE in holds:
        return Decision("allow", "Accepting edits.", "accept_edits", decision.risk, Level.WORKSPACE)
    if not _tried(facts, policy, holds):
        return decision
    why = "Runs read-only: the sandbox lets it change nothing."
    return Decision("allow", why, "sandbox", decision.risk, Level.READ_ONLY)


def _tried(facts: CallFacts, policy: Policy, holds: Collection[Level]) -> bool:
    """True if a command is run read-only without a question: not if its words name a high risk.

    A background command is not: nothing more could be offered when it fails. Nor is any if rules
    forbid reading files that the walls can't hide.
    """
    risky = facts.verdict is None or facts.verdict.named or facts.call.background
    return Level.READ_ONLY in holds and not risky and policy.walls_hold(facts.root)


def _reach(rules: Iterable[Rule], facts: CallFacts, *, explicit: bool = True) -> Level:
    """The level that rules allow a command: all its parts, so the lowest counts."""
    rules = tuple(rules)
    for levels in ((Level.OUTSIDE,), (Level.OUTSIDE, Level.NETWORK)):
        further = [rule for rule in rules if rule.level in levels]
        if _allowing_rule(further, facts, explicit=explicit):
            return levels[-1]
    return Level.WORKSPACE


def _allowing_rule(
    rules: Iterable[Rule], facts: CallFacts, *, explicit: bool = True
) -> Rule | None:
    if facts.verdict is not None:
        return rule_allowing_command(
            rules, facts.call, facts.verdict, facts.line, explicit=explicit
        )
    if facts.call.effect == "fetch":
        return rule_allowing_url(rules, facts.call)
    return rule_allowing_path(rules, facts.call, facts.ruled, explicit=explicit)


def _may_be_private(call: Call, policy: Policy) -> bool:
    """True if an address may lead into the person's own network, if it may be fetched at all: by
    its own words, or by a rule."""
    rules = [rule for rule in policy.allow if rule.private]
    return WebAddress.parse(call.subject).is_local or rule_allowing_url(rules, call) is not None


def _free_write(
    facts: CallFacts, policy: Policy, mode: Mode, workspace: Workspace
) -> tuple[str, str] | None:
    """Explain why a file is written without a question, and by what; None if it asks."""
    if _is_temporary(facts, workspace):
        return "Writes into the sandbox's own /tmp.", "sandbox"
    if facts.guarded:
        return None
    if mode == "accept_edits":
        return "Accepting edits.", "accept_edits"
    if facts.real and all(_auto_granted(path, policy, workspace) for path in facts.real):
        return "Files in this folder may be written.", "auto_grant"
    return None


def _is_temporary(facts: CallFacts, workspace: Workspace) -> bool:
    """True if a file tool stays in the `/tmp` that every confined command may write."""
    return (
        facts.verdict is None and bool(facts.real) and all(map(workspace.is_temporary, facts.real))
    )


def _reason(facts: CallFacts) -> str:
    if facts.call.effect in {"none", "read"}:
        return "Read-only."
    if facts.call.effect == "fetch":
        address = WebAddress.parse(facts.call.subject)
        where = " (on this machine or in your own network)" if address.is_local else ""
        return f"Sends this address to {address.site}{where}."
    if facts.guarded:
        return f"Writes into {facts.guarded}: {GUARDED[facts.guarded]}."
    if facts.verdict is None:
        return ""
    if facts.verdict.risk == "high-risk":
        return f"High-risk: {_every_reason(facts.verdict)}."
    return f"{facts.verdict.reason[:1].upper()}{facts.verdict.reason[1:]}."


def _every_reason(verdict: RiskVerdict) -> str:
    """Join the reasons for a command's risk: one per risky part, with its text if there are
    several."""
    reasons: dict[str, list[str]] = {}
    for part in verdict.worst:
        reasons.setdefault(part.reason, []).append(_short(part.text))
    if len(reasons) <= 1 and len(verdict.worst) <= 1:
        return verdict.reason
    sentences = [
        f"{reason} ({', '.join(f'`{text}`' for text in dict.fromkeys(texts))})"
        for reason, texts in reasons.items()
    ]
    return "; ".join(sentences)


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _SHOWN_CHARS)


def _restricted(line: Line, policy: Policy) -> bool:
    """True if rules restrict reading and the line shows contents: then no command runs unasked."""
    if not line or not rules_on_reading((*policy.deny, *policy.ask)):
        return False
    from tui.permissions.plain_command import shows_contents  # noqa: PLC0415 - loaded by now

    return any(shows_contents(one) for one, _ in line)


def _denied_reading(facts: CallFacts, policy: Policy, workspace: Workspace) -> Rule | None:
    """The rule that denies a call to read what it names: the same file by another name, or a path
    in the words of a command."""
    call = facts.call
    if not rules_on_reading(policy.deny) or call.effect == "fetch":
        return None
    reading = policy.reading(workspace)
    if call.command is not None:
        folder = facts.real[0] if facts.real else workspace.root
        return reading.denying_command((one for one, _ in facts.line or ()), folder)
    if call.tool not in _READING_TOOLS:
        return None
    there = filter(os.path.exists, facts.real)
    return next((rule for path in there if (rule := reading.denying(path))), None)


def _auto_granted(path: Path, policy: Policy, workspace: Workspace) -> bool:
    folders = [form for one in path.parents for form in path_forms(one, workspace, policy.home)]
    patterns = [Rule("", pattern.rstrip("/*") or "/") for pattern in policy.auto_grant]
    return any(rule.matches(folder) for rule in patterns for folder in folders)


def _own_files(facts: CallFacts, policy: Policy, workspace: Workspace) -> str:
    """Explain why a file tool may not touch a path of the program itself; "" if it may."""
    writes = facts.call.effect not in {"none", "read"}
    for path in facts.real:
        if is_opened(path, workspace) and (not writes or workspace.is_temporary(path)):
            continue
        if writes and workspace.only_reads(path):
            return f"{path} is outside the workspace, in a folder that is only read."
        if is_in(path, policy.private):
            return (
                f"{path} is in Holdfast's own folders, which hold its key, the user's rules "
                "and the records. Only the user may look at and change them."
            )
        parts = workspace.parts(path)
        if writes and any(one == PRIVATE_DIR and own in _OWN for one, own in pairwise(parts)):
            return (
                f"{path} belongs to Holdfast: only the user may change settings that widen "
                "what is allowed, and records are never edited."
            )
    return ""


def _guarded(path: Path, workspace: Workspace) -> str:
    """The folder around a path that is written only after a question of its own; "" for all
    others."""
    above = (part.lower() for part in workspace.parts(path)[:-1])
    return next((part for part in above if part in GUARDED), "")
