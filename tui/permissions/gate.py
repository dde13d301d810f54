"""The gate: asks the policy, remembers what the person granted, and says what a yes would cover."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, ToolError
from tui.core.paths import shorten
from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.core.web_address import WebAddress
from tui.core.workspace import Workspace
from tui.permissions.policy import CallFacts, Grant, Policy, decide, examine, input_to
from tui.permissions.risk_tiers import EXACT_ONLY, INTERPRETERS, SHELLS, SUBCOMMANDS
from tui.permissions.rules import (
    FILE_EDITORS,
    Rule,
    escape,
    matching_rule,
    rule_allowing_command,
)
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Call, Decision, Mode

if TYPE_CHECKING:
    from tui.permissions.plain_command import PlainCommand

log = logging.getLogger(__name__)

_EDITORS = (*FILE_EDITORS, "apply_patch")
_LONG = 200


@dataclass(frozen=True, slots=True)
class _Scope:
    """The calls that a lasting yes covers: in words, as a grant, and as rules for always."""

    words: str
    grant: Grant
    rules: tuple[Rule, ...]

    def at(self, level: Level) -> _Scope:
        """Return the same scope for a level of the sandbox."""
        rules = tuple(replace(rule, level=level) for rule in self.rules)
        own = tuple(replace(rule, level=level) for rule in self.grant.rules)
        return _Scope(self.words, replace(self.grant, rules=own, level=level), rules)


class Gate:
    """Holds the policy and this session's grants. One per agent.

    `remember_always` writes a rule into the person's own configuration; if it fails, the answer
    counts for the session and the failure is logged.
    """

    def __init__(
        self, policy: Policy, *, remember_always: Callable[[Rule], None] | None = None
    ) -> None:
        self.policy = policy
        self.grants: tuple[Grant, ...] = ()
        self.turn_grants: tuple[Grant, ...] = ()
        """Grants of the command whose turn is running."""
        self._workspace: Workspace | None = None
        self._remember = remember_always

    def decide(
        self,
        call: Call,
        *,
        mode: Mode,
        elevated: bool,
        workspace: Workspace,
        holds: Collection[Level] = (),
    ) -> Decision:
        """Ask the policy. `record` and `scope_of` use the workspace of the last decision."""
        self._workspace = workspace
        return decide(
            call,
            self.policy,
            mode=mode,
            elevated=elevated,
            grants=(*self.grants, *self.turn_grants),
            workspace=workspace,
            holds=holds,
        )

    def record(self, call: Call, answer: Answer, level: Level = Level.WORKSPACE) -> None:
        """Keep what "session" and "always" grant, at the level that was asked about; `scope_of`
        describes it."""
        if answer.answer not in {"session", "always"}:
            return
        scope = self._at(call, level)
        if scope.grant not in self.grants:
            self.grants = (*self.grants, scope.grant)
        if answer.answer != "always" or self._remember is None:
            return
        for rule in scope.rules:
            try:
                self._remember(rule)
            except HoldfastError as error:
                log.warning("couldn't save the rule %s: %s", rule, error)
                continue
            if rule not in self.policy.allow:
                self.policy = replace(self.policy, allow=(*self.policy.allow, rule))

    def scope_of(self, call: Call) -> str:
        """Describe for the person what "this session" and "always" would cover."""
        return self._scope(call).words

    @property
    def allowances(self) -> int:
        """Number of rules and grants that allow what the mode alone would ask about."""
        granted = {rule for grant in self.grants for rule in grant.shown}
        return len(granted | set(self.policy.allow))

    def always(self, call: Call, level: Level = Level.WORKSPACE) -> tuple[str, ...]:
        """The rules that "always" would write; none if it counts for this session only."""
        return tuple(map(str, self._at(call, level).rules)) if self._remember else ()

    def revoke(self, rule: Rule) -> bool:
        """Withdraw what a rule, or a yes for this session, allows. False if there is none. A rule
        in a file stays there: changing that is up to the caller."""
        before = self.policy.allow, self.grants
        self.policy = replace(
            self.policy, allow=tuple(one for one in self.policy.allow if one != rule)
        )
        self.grants = tuple(one for one in self.grants if rule not in one.shown)
        return before != (self.policy.allow, self.grants)

    def _at(self, call: Call, level: Level) -> _Scope:
        return self._scope(call).at(level if call.command is not None else Level.WORKSPACE)

    def _scope(self, call: Call) -> _Scope:
        workspace = self._workspace
        if call.types is not None:
            words = input_to(call.types.terminal)
            return _Scope(words, Grant(call.tool, subject=words, paths=(call.types.place,)), ())
        if workspace is None:
            return _this_call(call, "this call")
        try:
            facts = examine(call, self.policy, workspace)
        except ToolError:
            return _this_call(call, "this call")
        # A rule that always asks must ask again, so a yes covers no other call.
        if matching_rule(self.policy.ask, call, facts.verdict, facts.forms):
            return _Scope("this call", _this_call(call, "").grant, ())
        if facts.verdict is not None:
            return _command(facts)
        if call.effect == "fetch":
            return _site(call)
        if call.effect == "write" and facts.real:
            return _write(facts, workspace)
        if facts.real or call.effect == "read":
            return _this_call(call, "this file")
        rule = Rule(call.tool)
        return _Scope("this tool", Grant(call.tool, (rule,)), (rule,))


def _write(facts: CallFacts, workspace: Workspace) -> _Scope:
    call, around = facts.call, workspace.roots
    folders = dict.fromkeys(
        next((folder for folder in around if folder in path.parents), None) for path in facts.real
    )
    known = [folder for folder in folders if folder is not None]
    if facts.guarded or len(known) < len(folders):
        only = tuple(Rule.exactly(call.tool, str(path)) for path in facts.real)
        words = "this file" if len(facts.real) == 1 else "these files"
        return _Scope(words, _this_call(call, "").grant, only)
    tools = _EDITORS if call.tool in _EDITORS else (call.tool,)
    rules = tuple(Rule(tool, f"{escape(str(folder))}/*") for folder in known for tool in tools)
    where = "here" if known == [workspace.root] else f"in {' and '.join(map(shorten, known))}"
    words = f"edits {where}"
    return _Scope(words, Grant(call.tool, rules), rules)


def _site(call: Call) -> _Scope:
    address = WebAddress.parse(call.subject)
    rule = Rule(call.tool, f"{escape(address.origin)}/*")
    return _Scope(address.site, Grant(call.tool, (rule,)), (rule,))


def _this_call(call: Call, words: str) -> _Scope:
    rule = Rule.exactly(call.tool, call.subject) if call.subject else Rule(call.tool)
    grant = Grant(call.tool, subject=call.subject, paths=call.paths)
    return _Scope(words, grant, (rule,))


def _command(facts: CallFacts) -> _Scope:
    """Scope a yes to program and subcommand if the command is ordinary, otherwise to this very
    command."""
    this = _this_call(facts.call, "this command")
    verdict = facts.verdict
    assert verdict is not None
    if verdict.risk != "standard" or facts.line is None or any(p.around for p in verdict.parts):
        return this
    prefixes = dict.fromkeys(prefix_of(one) for one, why in facts.line if why)
    known = [prefix for prefix in prefixes if prefix is not None]
    rules = tuple(Rule(facts.call.tool, f"{escape(prefix)} *") for prefix in known)
    if not rule_allowing_command(rules, facts.call, verdict, facts.line, explicit=False):
        return this
    words = " and ".join(f"{prefix} …" for prefix in known)
    return _Scope(words, Grant(facts.call.tool, rules), rules)


def prefix_of(one: PlainCommand) -> str | None:
    """The prefix that a yes to a command covers (`git commit`); None if only the command itself."""
    from tui.permissions.wrapper_commands import WRAPPERS  # noqa: PLC0415 - start-up stays light

    name, *rest = one.text.split(" ")
    program = name.rpartition("/")[2].lower()
    if name in EXACT_ONLY | SHELLS or program in WRAPPERS or not re.fullmatch(r"[\w./+-]+", name):
        return None
    if INTERPRETERS.fullmatch(program):
        module = rest[:1] == ["-m"] and re.fullmatch(r"[A-Za-z_][\w.]*", "".join(rest[1:2]))
        return f"{name} -m {rest[1]}" if module else None
    if name in SUBCOMMANDS:
        word = re.fullmatch(r"[A-Za-z][\w:.-]*", "".join(rest[:1]))
        return f"{name} {rest[0]}" if word else None
    return name


class RulesOnly:
    """The approver where nobody can be asked: calls that no rule allows are refused, no plan is
    approved, and the model answers its questions itself."""

    async def ask(self, call: Call, decision: Decision) -> Answer:
        flags = ["--yolo"]
        lasting = not decision.once
        if call.types is not None:  # behind walls, a rule on its start covers a terminal's input
            confined = decision.level is not Level.OUTSIDE
            lasting = lasting and confined and call.types.began is not None
            call = call.types.began or call
        subjects = call.paths if len(call.paths) > 1 else (call.subject,)
        if lasting and call.subject and len(call.subject) <= _LONG and "\n" not in call.subject:
            level = decision.level if decision.walls else Level.WORKSPACE
            exact = (replace(Rule.exactly(call.tool, one), level=level) for one in subjects)
            rules = (shlex.quote(str(rule)) for rule in exact)
            flags.insert(0, " ".join(f"--allow {rule}" for rule in rules))
        elif (
            lasting and call.effect != "run"
        ):  # for a command that is not plain the tool's name is not enough
            flags.insert(0, f"--allow {call.tool}")
        reason = f"{decision.reason} There is no one to ask. Allow with {', or with '.join(flags)}."
        return Answer("no", reason.lstrip(), by="default")

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:  # noqa: ARG002 - as the port has it
        return UserAnswers(by="default")

    async def review_plan(self, title: str, plan: str) -> PlanReview:  # noqa: ARG002 - as the port has it
        return PlanReview("none", plan, by="default")
