"""The set-ups that `record.py` shows to Claude Code."""
# ruff: noqa: E501 - files, as they are

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class Case:
    """Files below a folder (or the home folder, `~/`), what is typed there, and what the model
    answers: texts, or calls with their input."""

    typed: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    answers: tuple[Any, ...] = ()
    args: tuple[str, ...] = ()
    folder: str = ""
    repository: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def _command(typed: str, body: str, head: str = "", **more: Any) -> Case:
    """`/tt`, a command of the folder."""
    return Case(typed, {".claude/commands/tt.md": f"---\n{head}---\n{body}\n"}, **more)


def _skill(
    typed: str, body: str, head: str = "", *, at: str = ".claude/skills/tt", **more: Any
) -> Case:
    files = {f"{at}/SKILL.md": f"---\n{head}---\n{body}\n", **more.pop("files", {})}
    return Case(typed, files, **more)


_SHELL: Final = ("--allowedTools", "Bash")
_WORDS: Final = "0=[$0] 1=[$1] 2=[$2] 3=[$3] A=[$ARGUMENTS]"

COMMANDS: Final = {
    "counts-from-zero": _command(
        '/tt one "two words" three', _WORDS + " A0=[$ARGUMENTS[0]] A9=[$ARGUMENTS[9]]"
    ),
    "nothing-typed": _command("/tt", _WORDS + " A0=[$ARGUMENTS[0]]"),
    "no-place": _command("/tt a  b", "Do it."),
    "no-place-nothing-typed": _command("/tt", "Do it."),
    "only-a-missing-word": _command("/tt one", "x $1"),
    "escapes": _command(
        "/tt one two",
        r"\$0 \$ARGUMENTS \$x $$0 $$ $$ARGUMENTS \\$0 $10 $01 $ARGUMENTSX ${ARGUMENTS} ${0} "
        r"$ARGUMENTS[x] $ARGUMENTS[1]x $1x $0_1 $-1 $@ $* $#",
    ),
    "only-an-escape": _command("/tt one", r"x \$0"),
    "variables": _command(
        "/tt one",
        "$HOME ${HOME} [${CLAUDE_SKILL_DIR}] [${CLAUDE_PLUGIN_ROOT}] [${CLAUDE_EFFORT}] "
        "$CLAUDE_PROJECT_DIR ${CLAUDE_PROJECT_DIR}/x ${CLAUDE_SESSION_ID}",
    ),
    "quotes": _command("/tt it's 'a b' c\\ d \"x\\\"y\" ", _WORDS),
    "quotes-in-words": _command('/tt a\'b c\'d "e \\" f" g\\ h', _WORDS),
    "open-quote": _command("/tt 'open a b", _WORDS),
    "operators": _command("/tt a;b $HOME * | c && d", _WORDS),
    "operator-in-word": _command("/tt a&b c", _WORDS),
    "redirect": _command("/tt a > b (c) <d> {e,f} ~ [g]", _WORDS),
    "dollars-typed": _command("/tt $HOME ${x} $(date) `date`", _WORDS),
    "empty-words": _command("/tt \"\" '' # c  #d", _WORDS),
    "lines": _command("/tt a\nb  c", _WORDS),
    "places-typed": _command("/tt $1 $ARGUMENTS", _WORDS),
    "bang-typed": _command("/tt !`echo ran`", "Do: $ARGUMENTS", args=_SHELL),
    "bang-typed-appended": _command("/tt !`echo ran`", "Do:", args=_SHELL),
    "bang-made-of-parts": _command("/tt echo ran", "Do: !`$ARGUMENTS`", args=_SHELL),
    "names": _command(
        "/tt 12 main x",
        "$issue $branch $0 ${issue} $issues $other $branch.x $issue[0]",
        "arguments: [issue, branch]\nargument-hint: '[issue] [branch]'\n",
    ),
    "names-in-words": _command("/tt 12", "$issue on [$branch]", "arguments: issue branch\n"),
    "names-without-place": _command("/tt 12 main", "Do it.", "arguments: [issue, branch]\n"),
    "bang": _command(
        "/tt one", "a !`echo hi $0` b\n!`echo second`\nx!`echo no` (!`echo no`)", args=_SHELL
    ),
    "bang-allowed": _command("/tt", "a !`echo hi` b", "allowed-tools: Bash(echo:*)\n"),
    "bang-not-allowed": _command("/tt", "a !`touch made` b"),
    "bang-harmless": _command("/tt", "a !`echo hi` b !`pwd`"),
    "bang-fails": _command("/tt", "a !`echo out; echo err >&2; exit 3` b", args=_SHELL),
    "bang-errors-and-goes-on": _command("/tt", "a !`echo out; echo err >&2` b", args=_SHELL),
    "bang-quiet": _command("/tt", "a !`true` b", args=_SHELL),
    "bang-block": _command("/tt one", "a\n```!\necho one\necho $0\n```\nb", args=_SHELL),
    "bang-in-code": _command("/tt", "`` !`echo no` ``\n```\n!`echo in fence`\n```\n", args=_SHELL),
    "bang-lines": _command("/tt", "a !`echo one\necho two` b", args=_SHELL),
    "at-file": Case(
        "/tt note.txt",
        {
            ".claude/commands/tt.md": "Read @note.txt and @$0 and @missing.txt and @sub/ and `@code.txt`.\n",
            "note.txt": "the note\n",
            "sub/a.txt": "a\n",
            "code.txt": "c\n",
        },
    ),
    "front-matter-none": Case("/tt", {".claude/commands/tt.md": "# The title\n\nDo it.\n"}),
    "front-matter-broken": _command("/tt", "Do it.", "description: [unclosed\nmodel: haiku\n"),
    "front-matter-open": Case("/tt", {".claude/commands/tt.md": "---\ndescription: d\nDo it.\n"}),
    "front-matter-hint-list": _command(
        "/tt", "Do it.", "description: d: e\nargument-hint: [a] [b]\n"
    ),
    "model": _command("/tt", "Do it.", "model: haiku\n"),
    "model-unknown": _command("/tt", "Do it.", "model: some-model\n"),
    "not-for-model": _command(
        "/tt", "Do it.", "description: secret one\ndisable-model-invocation: true\n"
    ),
    "not-for-user": _command("/tt", "Do it.", "description: d\nuser-invocable: false\n"),
    "when-to-use": _command(
        "/tt", "Do it.", "description: d\nwhen_to_use: when it rains\nargument-hint: '[x]'\n"
    ),
    "in-folder": Case("/sub:tt x", {".claude/commands/sub/tt.md": "Sub $0.\n"}),
    "in-folder-bare": Case("/tt x", {".claude/commands/sub/tt.md": "Sub $0.\n"}),
    "in-folder-deep": Case("/a:b:tt x", {".claude/commands/a/b/tt.md": "Sub $0.\n"}),
    "clash-user-project": Case(
        "/tt", {".claude/commands/tt.md": "Project's.\n", "~/.claude/commands/tt.md": "User's.\n"}
    ),
    "clash-command-skill": Case(
        "/tt",
        {
            ".claude/commands/tt.md": "Command.\n",
            ".claude/skills/tt/SKILL.md": "---\ndescription: s\n---\nSkill.\n",
        },
    ),
    "clash-user-skill-project-command": Case(
        "/tt",
        {
            ".claude/commands/tt.md": "Command.\n",
            "~/.claude/skills/tt/SKILL.md": "---\ndescription: s\n---\nSkill.\n",
        },
    ),
    "clash-skills": Case(
        "/tt",
        {
            ".claude/skills/tt/SKILL.md": "---\ndescription: s\n---\nProject's.\n",
            "~/.claude/skills/tt/SKILL.md": "---\ndescription: s\n---\nUser's.\n",
        },
    ),
    "clash-built-in": Case("/compact x", {".claude/commands/compact.md": "Mine $0.\n"}),
    "name-with-blank": Case("/my cmd x", {".claude/commands/my cmd.md": "Mine $0.\n"}),
    "name-readme": Case("/README x", {".claude/commands/README.md": "Mine $0.\n"}),
    "unknown": Case("/nothing-of-that-name x", {}),
    "other-case": Case("/TT x", {".claude/commands/tt.md": "Mine $0.\n"}),
    "nested-folder": Case(
        "/tt x",
        {"pkg/.claude/commands/tt.md": "Package's.\n", ".claude/commands/tt.md": "Root's.\n"},
        folder="pkg",
        repository=True,
    ),
    "from-below": Case(
        "/tt x", {".claude/commands/tt.md": "Root's.\n"}, folder="pkg", repository=True
    ),
}

_TYPED: Final = (
    "$HOME b c",
    "a ${x} b",
    "a $(date) b",
    "a `date` b",
    "a $x$y b",
    "a $1 b",
    "$x",
    "${x} b",
    "a b$x c",
    "don't stop",
    "it's",
    "a 'b",
    'a "b c',
    'say "it\'s" now',
    "a\\nb c",
    "path/to/file.py:10 x",
    "x=1 b c",
    "a x=1 b",
    "a > b",
    "a 2>b c",
    "a <b c",
    "a (b) c",
    "(a) b",
    "a {b,c} d",
    "{a} b",
    "a #b",
    "#12 a",
    "a b#c d",
    "fix #12 now",
    "a ! b",
    "! a b",
    "a * b?",
    "a [b] c",
    "[a] b",
    "~/x b",
    "a\\",
    "a | b",
    "a & b",
    "a; b",
    "; a",
    "if a b",
    "for x in y",
    "a 'b'\"c\"d e",
    "$'a b' c",
    "a, b. c",
    "a\tb",
    "  a   b  ",
    "what is <x>?",
    "why? because",
    "a && b",
    "é ü 日本 語",
    "--flag=x -y",
    "a=b",
    "a:b @c",
    '{"a": 1} b',
    "a (b",
    "a ) b",
    "100% sure",
    "a^b ~c",
    "then do x",
    'a "" b',
    '"a\\\\b" c',
    '"a \\$ b" c',
    "'a\\b' c",
    "a\\ b c",
    "function x",
    "time a",
    "case x",
    "[[ a ]]",
    "echo a \\\n b",
    "a |& b",
    "a <<< b",
    "a <(b) c",
    "a $((1+2)) b",
    "é'x y'z w",
    "!x y",
    "a !x",
)
WORDS: Final = {
    f"words {n}": _command(f"/tt {typed}", "[$0][$1][$2][$3][$4]") for n, typed in enumerate(_TYPED)
}
_CALL: Final = ("Skill", {"skill": "tt", "args": "one two"})
SKILLS: Final = {
    "skill-typed": _skill(
        "/tt one two",
        "S $0 $1 $2 $ARGUMENTS ${CLAUDE_SKILL_DIR} ${CLAUDE_PROJECT_DIR} ${CLAUDE_SESSION_ID}",
        "name: tt\ndescription: d\n",
        files={".claude/skills/tt/ref.md": "r\n"},
    ),
    "skill-by-model": _skill(
        "go", "S $0 $1 $2 ${CLAUDE_SKILL_DIR}", "name: tt\ndescription: d\n", answers=(_CALL,)
    ),
    "skill-without-place": _skill("/tt one", "S", "name: tt\ndescription: d\n"),
    "skill-named-otherwise": _skill("/other one", "S", "name: other\ndescription: d\n"),
    "skill-named-otherwise-folder": _skill("/tt one", "S", "name: other\ndescription: d\n"),
    "skill-hidden": _skill("/tt", "S", "description: d\ndisable-model-invocation: true\n"),
    "skill-hidden-by-model": _skill(
        "go", "S", "description: d\ndisable-model-invocation: true\n", answers=(_CALL,)
    ),
    "skill-not-typed": _skill("/tt", "S", "description: d\nuser-invocable: false\n"),
    "skill-bang": _skill("/tt", "S !`echo hi`", "description: d\nallowed-tools: Bash(echo:*)\n"),
    "skill-bang-by-model": _skill(
        "go",
        "S !`echo hi $0` !`cat ${CLAUDE_SKILL_DIR}/f`",
        "description: d\nallowed-tools: Bash(echo:*), Bash(cat:*)\n",
        answers=(_CALL,),
        files={".claude/skills/tt/f": "in f\n"},
    ),
    "skill-at-by-model": _skill(
        "go", "S @note.txt", "description: d\n", answers=(_CALL,), files={"note.txt": "the note\n"}
    ),
    "skill-fork": _skill(
        "/tt one",
        "Fork $0",
        "description: d\ncontext: fork\nagent: Explore\n",
        answers=("sub says",),
    ),
    "skill-fork-own-agent": _skill(
        "/tt one",
        "Fork $0",
        "description: d\ncontext: fork\nagent: mine\n",
        answers=("sub says",),
        files={
            ".claude/agents/mine.md": "---\nname: mine\ndescription: m\ntools: Read\n---\nYou are mine.\n"
        },
    ),
    "skill-fork-by-model": _skill(
        "go", "Fork $0", "description: d\ncontext: fork\n", answers=(_CALL, "sub says")
    ),
    "skill-model": _skill("/tt one", "S $0", "description: d\nmodel: haiku\n"),
    "skill-long": _skill("go", "S", f"description: {'long words ' * 300}\n"),
    "skill-no-description": _skill("go", "First line.\n\nSecond.", "name: tt\n"),
    "skill-when": _skill("go", "S", "description: d\nwhen_to_use: when it rains\n"),
    "skill-lower-case-file": Case(
        "/tt", {".claude/skills/tt/skill.md": "---\ndescription: d\n---\nS\n"}
    ),
    "skill-in-group": Case(
        "/group:tt", {".claude/skills/group/tt/SKILL.md": "---\ndescription: d\n---\nS\n"}
    ),
    "skill-paths": Case(
        "go",
        {
            ".claude/skills/tt/SKILL.md": "---\ndescription: d\npaths: src/**\n---\nS\n",
            "src/a.py": "x = 1\n",
        },
        answers=(("Read", {"file_path": "src/a.py"}),),
    ),
    "skills-many": Case(
        "go",
        {
            f".claude/skills/s{n:03}/SKILL.md": f"---\ndescription: Skill number {n} {'does a thing with words ' * 20}\n---\nS\n"
            for n in range(12)
        },
        environment={"SLASH_COMMAND_TOOL_CHAR_BUDGET": "2500"},
    ),
}
AGENTS: Final = {
    "agent-fields": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: m\ntools: Read, Bash(git:*)\nmodel: haiku\ncolor: red\npermissionMode: plan\n---\nYou are mine.\n"
        },
        answers=(
            ("Agent", {"description": "d", "prompt": "do", "subagent_type": "mine"}),
            "sub says",
        ),
    ),
    "agent-without-tools": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: m\ndisallowedTools: Bash, Edit\n---\nYou are mine.\n"
        },
        answers=(
            ("Agent", {"description": "d", "prompt": "do", "subagent_type": "mine"}),
            "sub says",
        ),
    ),
    "agent-both": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: m\ntools: Read, Bash, Edit\ndisallowedTools: Bash\n---\nYou are mine.\n"
        },
    ),
    "agent-skills": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: m\nskills: [tt]\n---\nYou are mine.\n",
            ".claude/skills/tt/SKILL.md": "---\ndescription: d\n---\nThe skill $0 ${CLAUDE_SKILL_DIR}.\n",
        },
        answers=(
            ("Agent", {"description": "d", "prompt": "do", "subagent_type": "mine"}),
            "sub says",
        ),
    ),
    "agent-memory": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: m\nmemory: project\n---\nYou are mine.\n",
            ".claude/agent-memory/mine/MEMORY.md": "- remembered\n",
        },
        answers=(
            ("Agent", {"description": "d", "prompt": "do", "subagent_type": "mine"}),
            "sub says",
        ),
    ),
    "agent-prompt-first": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: m\ninitialPrompt: Begin with this.\neffort: low\nmaxTurns: 1\n---\nYou are mine.\n"
        },
        answers=(
            ("Agent", {"description": "d", "prompt": "do", "subagent_type": "mine"}),
            "sub says",
        ),
    ),
    "agent-long": Case(
        "go",
        {
            ".claude/agents/mine.md": f"---\nname: mine\ndescription: {'long words ' * 300}\n---\nYou are mine.\n"
        },
    ),
    "agents-many": Case(
        "go",
        {
            f"~/.claude/agents/a{n:03}.md": f"---\nname: a{n:03}\ndescription: Agent number {n} {'does a thing ' * 3}\n---\nYou.\n"
            for n in range(137)
        },
    ),
    "agent-no-description": Case(
        "go", {".claude/agents/mine.md": "---\nname: mine\n---\nYou are mine.\n"}
    ),
    "agent-no-name": Case(
        "go", {".claude/agents/mine.md": "---\ndescription: m\n---\nYou are mine.\n"}
    ),
    "agent-clash": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: project's\n---\nx\n",
            "~/.claude/agents/mine.md": "---\nname: mine\ndescription: user's\n---\nx\n",
        },
    ),
    "agent-in-folder": Case(
        "go", {".claude/agents/sub/mine.md": "---\nname: mine\ndescription: m\n---\nx\n"}
    ),
    "agent-escaped-lines": Case(
        "go",
        {
            ".claude/agents/mine.md": '---\nname: mine\ndescription: "one\\ntwo <example>x: y</example>"\n---\nx\n'
        },
    ),
    "agent-unquoted-colon": Case(
        "go",
        {
            ".claude/agents/mine.md": "---\nname: mine\ndescription: Use this: when x. user: 'y'\\nassistant: z\n---\nx\n"
        },
    ),
}
_PLUGIN: Final = {
    "plug/.claude-plugin/plugin.json": '{"name": "plug", "version": "1.0.0", "description": "a plugin"}',
    "plug/commands/tt.md": "---\ndescription: c\nallowed-tools: Bash(echo:*)\n---\nPlug $0 ${CLAUDE_PLUGIN_ROOT} !`echo ${CLAUDE_PLUGIN_ROOT}`\n",
    "plug/commands/sub/deep.md": "Deep\n",
    "plug/skills/sk/SKILL.md": "---\nname: sk\ndescription: s\n---\nSkill $0 ${CLAUDE_PLUGIN_ROOT} ${CLAUDE_SKILL_DIR}\n",
    "plug/agents/ag.md": "---\nname: ag\ndescription: a\n---\nYou are ag in ${CLAUDE_PLUGIN_ROOT}.\n",
    "plug/hooks/hooks.json": '{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo hook of ${CLAUDE_PLUGIN_ROOT} $CLAUDE_PLUGIN_ROOT"}]}]}}',
    "plug/.mcp.json": '{"mcpServers": {"srv": {"command": "${CLAUDE_PLUGIN_ROOT}/missing", "args": []}}}',
    "plug/output-styles/loud.md": "---\nname: loud\ndescription: l\n---\nBe loud.\n",
}
_WITH: Final = ("--plugin-dir", "<WORK>/plug")
PLUGINS: Final = {
    "plugin-command": Case("/plug:tt one", _PLUGIN, args=_WITH),
    "plugin-command-bare": Case("/tt one", _PLUGIN, args=_WITH),
    "plugin-command-deep": Case("/plug:sub:deep", _PLUGIN, args=_WITH),
    "plugin-skill": Case("/plug:sk one", _PLUGIN, args=_WITH),
    "plugin-agent": Case(
        "go",
        _PLUGIN,
        args=_WITH,
        answers=(
            ("Agent", {"description": "d", "prompt": "do", "subagent_type": "plug:ag"}),
            "sub says",
        ),
    ),
    "plugin-without-manifest": Case("/plug:tt", {"plug/commands/tt.md": "Plug\n"}, args=_WITH),
    "plugin-own-folders": Case(
        "/plug:x",
        {
            "plug/.claude-plugin/plugin.json": '{"name": "plug", "commands": ["./more/x.md"], "agents": "./other/ag.md", "skills": "./sk"}',
            "plug/more/x.md": "X\n",
            "plug/commands/tt.md": "TT\n",
            "plug/other/ag.md": "---\nname: ag\ndescription: a\n---\nx\n",
            "plug/agents/no.md": "---\nname: no\ndescription: n\n---\nx\n",
            "plug/sk/s1/SKILL.md": "---\ndescription: s\n---\ns\n",
            "plug/skills/s2/SKILL.md": "---\ndescription: s2\n---\ns\n",
        },
        args=_WITH,
    ),
}
STYLES: Final = {
    "style": Case(
        "go",
        {
            ".claude/output-styles/loud.md": "---\nname: Loud\ndescription: l\n---\nBe loud.\n",
            ".claude/settings.json": '{"outputStyle": "Loud"}',
        },
    ),
    "style-keeps": Case(
        "go",
        {
            ".claude/output-styles/loud.md": "---\nname: Loud\ndescription: l\nkeep-coding-instructions: true\n---\nBe loud.\n",
            ".claude/settings.json": '{"outputStyle": "Loud"}',
        },
    ),
    "style-by-file": Case(
        "go",
        {
            "~/.claude/output-styles/loud.md": "Be loud.\n",
            "~/.claude/settings.json": '{"outputStyle": "loud"}',
        },
    ),
    "style-unknown": Case("go", {".claude/settings.json": '{"outputStyle": "nothing"}'}),
    "style-built-in": Case("go", {".claude/settings.json": '{"outputStyle": "Explanatory"}'}),
    "style-off": Case("go", {".claude/output-styles/loud.md": "Be loud.\n"}),
}
_READ: Final = (("Read", {"file_path": "src/a.py"}),)
INSTRUCTIONS: Final = {
    "memory-files": Case(
        "go",
        {
            "CLAUDE.md": "Root.\n",
            "CLAUDE.local.md": "Local.\n",
            ".claude/CLAUDE.md": "Dot.\n",
            "~/.claude/CLAUDE.md": "User's.\n",
            "AGENTS.md": "Agents.\n",
        },
    ),
    "agents-only": Case("go", {"AGENTS.md": "Agents.\n"}),
    "imports": Case(
        "go",
        {
            "CLAUDE.md": "See @a.md and @./sub/b.md.\n@missing.md\n`@code.md`\n```\n@fence.md\n```\n<!-- @comment.md -->\n- @list.md\nmail me@x.org\n@~/home.md\n",
            "a.md": "A, then @sub/c.md\n",
            "sub/b.md": "B\n",
            "sub/c.md": "C, by the root\n",
            "sub/sub/c.md": "C, by its folder\n",
            "code.md": "CODE\n",
            "fence.md": "FENCE\n",
            "comment.md": "COMMENT\n",
            "list.md": "LIST\n",
            "~/home.md": "HOME\n",
        },
    ),
    "import-folder-of-file": Case(
        "go",
        {
            "CLAUDE.md": "@sub/b.md\n",
            "sub/b.md": "B @c.md\n",
            "sub/c.md": "C, by its folder\n",
            "c.md": "C, by the root\n",
        },
    ),
    "import-depth": Case(
        "go", {"CLAUDE.md": "0 @1.md\n", **{f"{n}.md": f"{n} @{n + 1}.md\n" for n in range(1, 9)}}
    ),
    "import-circle": Case(
        "go", {"CLAUDE.md": "0 @1.md\n", "1.md": "1 @2.md\n", "2.md": "2 @1.md @CLAUDE.md\n"}
    ),
    "import-twice": Case("go", {"CLAUDE.md": "@1.md and @1.md\n", "1.md": "one\n"}),
    "import-kinds": Case(
        "go",
        {
            "CLAUDE.md": "@data.json @x.py @y.png @noend @with\\ blank.md @dir\n",
            "data.json": "{}\n",
            "x.py": "x = 1\n",
            "noend": "noend\n",
            "with blank.md": "blank\n",
            "dir/a.md": "a\n",
        },
    ),
    "import-outside": Case(
        "go",
        {
            "CLAUDE.md": "@../home/out.md @~/.claude/own.md\n",
            "~/out.md": "OUT\n",
            "~/.claude/own.md": "OWN\n",
        },
    ),
    "import-of-user": Case(
        "go",
        {
            "~/.claude/CLAUDE.md": "@own.md @~/out.md\n",
            "~/out.md": "OUT\n",
            "~/.claude/own.md": "OWN\n",
        },
    ),
    "import-words": Case(
        "go",
        {
            "CLAUDE.md": 'Ask @a.md, (@b.md) "@c.md" @d.md. @e.md: x@f.md **@g.md** @h.md#part\n',
            **{f"{n}.md": f"{n}\n" for n in "abcdefgh"},
        },
    ),
    "import-marked-up": Case(
        "go",
        {
            "CLAUDE.md": "# @h.md\n> @q.md\n[text](@l.md)\n~~~\n@t.md\n~~~\n    @i.md\n``x @d.md``\n| @c.md |\n",
            **{f"{n}.md": f"{n}\n" for n in "hqltidc"},
        },
    ),
    "comments": Case(
        "go",
        {
            "CLAUDE.md": "one <!-- inline --> two\n<!-- a block -->\nthree\n<!--\nmany\nlines\n-->\nfour\n```\n<!-- in code -->\n```\n"
        },
    ),
    "front-matter-of-memory": Case(
        "go", {"CLAUDE.md": "---\npaths: src/**\ntitle: x\n---\nText.\n"}
    ),
    "upwards": Case(
        "go",
        {
            "CLAUDE.md": "Root.\n",
            "pkg/CLAUDE.md": "Package.\n",
            "pkg/CLAUDE.local.md": "Package local.\n",
            "pkg/.claude/CLAUDE.md": "Package dot.\n",
        },
        folder="pkg",
        repository=True,
    ),
    "nested": Case(
        "go",
        {
            "CLAUDE.md": "Root.\n",
            "src/CLAUDE.md": "Src. @inc.md\n",
            "src/inc.md": "INC\n",
            "src/CLAUDE.local.md": "Src local.\n",
            "src/.claude/CLAUDE.md": "Src dot.\n",
            "src/.claude/rules/r.md": "Src rule.\n",
            "src/a.py": "x\n",
        },
        answers=_READ,
    ),
    "nested-by-mention": Case("look at @src/a.py", {"src/CLAUDE.md": "Src.\n", "src/a.py": "x\n"}),
    "nested-by-write": Case(
        "go",
        {"src/CLAUDE.md": "Src.\n"},
        answers=(("Write", {"file_path": "src/b.py", "content": "y\n"}),),
        args=("--permission-mode", "acceptEdits"),
    ),
    "rules": Case(
        "go",
        {
            ".claude/rules/all.md": "All.\n",
            ".claude/rules/sub/deep.md": "Deep @inc.md.\n",
            ".claude/rules/sub/inc.md": "INC\n",
            ".claude/rules/src.md": "---\npaths: src/**/*.py\n---\nFor src.\n",
            ".claude/rules/other.md": "---\npaths:\n  - 'docs/**'\n---\nFor docs.\n",
            "~/.claude/rules/mine.md": "Mine.\n",
            "src/a.py": "x\n",
        },
        answers=_READ,
    ),
    "rules-spelled": Case(
        "go",
        {
            ".claude/rules/a.md": "---\npaths: 'src/*.{py,ts}, lib/**'\n---\nA.\n",
            ".claude/rules/b.md": "---\npaths: src\n---\nB.\n",
            ".claude/rules/c.md": "---\npaths: '*.py'\n---\nC.\n",
            ".claude/rules/d.md": "---\nglobs: src/**\n---\nD.\n",
            ".claude/rules/e.md": "---\npaths: '**'\n---\nE.\n",
            ".claude/rules/f.md": "---\npaths: []\n---\nF.\n",
            ".claude/rules/g.md": "---\npaths: /src/**\n---\nG.\n",
            ".claude/rules/h.md": "---\npaths: ./src/**\n---\nH.\n",
            ".claude/rules/i.md": "---\npaths: src/\n---\nI.\n",
            ".claude/rules/j.md": "---\npaths: ['!src/**', '**/*.py']\n---\nJ.\n",
            "src/a.py": "x\n",
        },
        answers=_READ,
    ),
}
MORE: Final = {
    "rules-globs": Case(
        "go",
        {
            **{
                f".claude/rules/{n}.md": f"---\npaths: {glob}\n---\n{n.upper()}.\n"
                for n, glob in {
                    "a": "'src/*'",
                    "b": "'**/*'",
                    "c": "['**/*.py', '!src/**']",
                    "d": "sub",
                    "e": "src/sub",
                    "f": "'*.{py,ts}'",
                    "g": "'**/sub/**'",
                    "h": "src/**/a.py",
                    "i": "'s*/sub/?.py'",
                    "j": "SRC/**",
                    "k": "'src/[st]ub/a.py'",
                    "l": "'*'",
                    "m": "sub/**",
                    "n": "/a.py",
                    "o": "'**/sub'",
                    "p": "src/sub/a",
                }.items()
            },
            "src/sub/a.py": "x",
        },
        answers=(("Read", {"file_path": "src/sub/a.py"}),),
    ),
    "agents-imports": Case(
        "go",
        {
            "AGENTS.md": "Agents. @a.md\n",
            "a.md": "A\n",
            "sub/AGENTS.md": "Sub agents.\n",
            "sub/x.py": "x\n",
        },
        answers=(("Read", {"file_path": "sub/x.py"}),),
    ),
    "agents-and-claude": Case(
        "go", {"AGENTS.md": "Agents.\n", "CLAUDE.md": "Claude. @AGENTS.md\n"}
    ),
    "agents-and-local": Case("go", {"AGENTS.md": "Agents.\n", "CLAUDE.local.md": "Local.\n"}),
    "user-agents": Case(
        "go", {"~/.claude/AGENTS.md": "User agents.\n", "~/AGENTS.md": "Home agents.\n"}
    ),
}
_HOOK: Final = '[{"hooks": [{"type": "command", "command": "echo %s $CLAUDE_PLUGIN_ROOT $CLAUDE_PROJECT_DIR"}]}]'
MORE_PLUGINS: Final = {
    "plugin-commands-replaced": Case("/plug:tt", PLUGINS["plugin-own-folders"].files, args=_WITH),
    "plugin-inline": Case(
        "go",
        {
            "plug/.claude-plugin/plugin.json": '{"name": "plug", "hooks": {"hooks": {"UserPromptSubmit": '
            + _HOOK % "inline"
            + '}}, "mcpServers": {"srv": {"command": "/missing"}}}',
            "plug/hooks/hooks.json": '{"description": "d", "hooks": {"UserPromptSubmit": '
            + _HOOK % "file"
            + "}}",
            "plug/.mcp.json": '{"other": {"command": "/missing2"}}',
        },
        args=_WITH,
    ),
    "plugin-hooks-unwrapped": Case(
        "go",
        {
            "plug/.claude-plugin/plugin.json": '{"name": "plug"}',
            "plug/hooks/hooks.json": '{"UserPromptSubmit": ' + _HOOK % "bare" + "}",
        },
        args=_WITH,
    ),
    "plugin-skill-at-root": Case(
        "/plug",
        {
            "plug/.claude-plugin/plugin.json": '{"name": "plug"}',
            "plug/SKILL.md": "---\nname: plug\ndescription: d\n---\nRoot skill.\n",
        },
        args=_WITH,
    ),
    "plugin-name-bad": Case(
        "/My Plug:tt",
        {"plug/.claude-plugin/plugin.json": '{"name": "My Plug"}', "plug/commands/tt.md": "TT\n"},
        args=_WITH,
    ),
    "plugin-manifest-broken": Case(
        "/plug:tt",
        {"plug/.claude-plugin/plugin.json": "{", "plug/commands/tt.md": "TT\n"},
        args=_WITH,
    ),
    "plugin-leads-out": Case(
        "/plug:x",
        {
            "plug/.claude-plugin/plugin.json": '{"name": "plug", "commands": ["../x.md"]}',
            "x.md": "X\n",
        },
        args=_WITH,
    ),
    "plugin-clash": Case(
        "/plug:tt",
        {
            "plug/.claude-plugin/plugin.json": '{"name": "plug"}',
            "plug/commands/tt.md": "Plugin.\n",
            ".claude/commands/plug/tt.md": "Folder.\n",
        },
        args=_WITH,
    ),
    "plugin-command-names": Case(
        "/plug:tt one",
        {
            "plug/.claude-plugin/plugin.json": '{"name": "plug", "commands": {"tt": {"source": "./x.md", "description": "from manifest"}, "yy": {"content": "Inline $0"}}}',
            "plug/x.md": "X $0\n",
        },
        args=_WITH,
    ),
}
CASES: Final = {
    **COMMANDS,
    **WORDS,
    **SKILLS,
    **AGENTS,
    **PLUGINS,
    **MORE_PLUGINS,
    **STYLES,
    **INSTRUCTIONS,
    **MORE,
}
