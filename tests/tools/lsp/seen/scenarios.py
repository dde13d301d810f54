"""What each real server was shown: files with an old problem on a line that no edit touches, edits
that break something, and edits that break nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SEEN: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Step:
    """One edit: the whole new text of a file. `breaks` are the lines, as `file:line`, in which
    something new has to be said, `may` further ones in which it may."""

    file: str
    text: str
    breaks: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """Files, and the edits that follow. `words` start the server, `globs` are its files."""

    words: str
    globs: tuple[str, ...]
    files: Mapping[str, str]
    steps: tuple[Step, ...]


def _python_types() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = 'def area(w: int, h: int) -> int:\n    return w * h\n\n\nold: int = "text"\n'
    b = "from a import area\n\nx: int = area(1, 2)\nprint(x)\n"
    moved, wide = f"# moved\n{a}", a.replace("h: int)", "h: int, d: int)")
    return {"a.py": a, "b.py": b}, (
        Step("a.py", moved),
        Step("a.py", moved + 'n: int = area("a", 2)\n', ("a.py:7",)),
        Step("b.py", b + "# b\n"),
        Step("a.py", moved + 'n: int = area("a", 2)\ndef (:\n', ("a.py:8",), ("a.py:9",)),
        Step("a.py", moved),
        Step("a.py", wide, ("b.py:3",), ("a.py:1", "b.py:4")),
        Step("a.py", a),
        Step("b.py", b + "print(missing)\n", ("b.py:5",)),
    )


def _python_names() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = "print(gone)\n\n\ndef area(w, h):\n    return w * h\n"
    moved = f"# moved\n{a}"
    return {"a.py": a}, (
        Step("a.py", moved),
        Step("a.py", moved + "\n\nprint(missing)\n", ("a.py:9",)),
        Step("a.py", moved + "\n\nprint(missing)\ndef (:\n", ("a.py:10",), ("a.py:11",)),
        Step("a.py", moved),
        Step("a.py", moved + "\n\nn = 1\n"),
        Step("a.py", moved + "\n\nprint(again)\n", ("a.py:9",)),
    )


def _typescript() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = (
        "export function area(w: number, h: number): number {\n  return w * h;\n}\n"
        "export const old: number = 'text';\n"
    )
    b = "import { area } from './a';\nexport const x = area(1, 2);\n"
    moved = f"// moved\n{a}"
    wide = a.replace("h: number)", "h: number, d: number)").replace("w * h", "w * h * d")
    config = '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["*.ts"]}\n'
    return {"tsconfig.json": config, "a.ts": a, "b.ts": b}, (
        Step("a.ts", moved),
        Step("a.ts", moved + "export const n = area('a', 2);\n", ("a.ts:6",)),
        Step("b.ts", b + "// b\n"),
        Step("a.ts", moved + "export const n = area('a', 2);\nconst ;\n", ("a.ts:7",)),
        Step("a.ts", moved),
        Step("a.ts", wide, ("b.ts:2",)),
        Step("a.ts", a),
        Step("b.ts", b + "missing();\n", ("b.ts:3",)),
    )


def _c() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    header = "int area(int w, int h);\n"
    a = '#include "a.h"\nint area(int w, int h) { return w * h; }\nint old = "text";\n'
    b = '#include "a.h"\nint x = area(1, 2);\n'
    moved = f"// moved\n{a}"
    files = {"compile_flags.txt": "-xc++\n-Wall\n", "a.h": header, "a.cpp": a, "b.cpp": b}
    return files, (
        Step("a.cpp", moved),
        Step("a.cpp", moved + "int n = missing;\n", ("a.cpp:5",)),
        Step("b.cpp", b + "// b\n"),
        Step("a.cpp", moved + "int n = missing;\nint (;\n", ("a.cpp:6",)),
        Step("a.cpp", moved),
        Step("a.h", header.replace("int h", "int h, int d"), ("b.cpp:2",), ("a.cpp:3",)),
        Step("a.h", header),
        Step("b.cpp", b + "int y = area(x);\n", ("b.cpp:3",)),
    )


def _go() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = 'package w\n\nfunc Area(w, h int) int { return w * h }\n\nvar old int = "text"\n'
    b = "package w\n\nvar X = Area(1, 2)\n"
    moved = f"// moved\n{a}"
    return {"go.mod": "module w\n\ngo 1.19\n", "a.go": a, "b.go": b}, (
        Step("a.go", moved),
        Step("a.go", moved + "\nvar n int = missing\n", ("a.go:8",)),
        Step("a.go", moved + "\nvar n int = missing\nfunc (\n", ("a.go:10",)),
        Step("a.go", moved),
        Step("a.go", a.replace("h int", "h, d int"), ("b.go:3",)),
        Step("a.go", a),
        Step("b.go", b + "\nvar Y int = Area\n", ("b.go:5",)),
        Step("b.go", b),
    )


def _rust() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = 'pub fn area(w: u32, h: u32) -> u32 {\n    w * h\n}\n\npub const OLD: u32 = "text";\n'
    b = "pub fn x() -> u32 {\n    crate::a::area(1, 2)\n}\n"
    moved = f"// moved\n{a}"
    wide = a.replace("h: u32", "h: u32, d: u32").replace("w * h", "w * h * d")
    files = {
        "Cargo.toml": '[package]\nname = "w"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "mod a;\nmod b;\n",
        "src/a.rs": a,
        "src/b.rs": b,
    }
    return files, (
        Step("src/a.rs", moved),
        Step("src/a.rs", moved + "pub const N: u32 = missing;\n", ("src/a.rs:7",)),
        Step("src/a.rs", moved + "pub const N: u32 = missing;\nfn (\n", ("src/a.rs:8",)),
        Step("src/a.rs", moved),
        Step("src/a.rs", wide, ("src/b.rs:2",), ("src/a.rs:1",)),
        Step("src/a.rs", a),
        Step("src/b.rs", b + "pub const Y: u32 = gone;\n", ("src/b.rs:4",)),
        Step("src/b.rs", b),
    )


def _shell() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = "#!/bin/bash\nx=$1\necho $x\n"
    return {"a.sh": a}, (
        Step("a.sh", a + "# more\n"),
        Step("a.sh", a + 'echo "$y"\n', ("a.sh:4",)),
        Step("a.sh", a + 'echo "$y"\nif true; then\n', ("a.sh:5",), ("a.sh:6",)),
        Step("a.sh", a + "echo more\n"),
        Step("a.sh", a + "echo more\ncd /tmp\n", ("a.sh:5",)),
        Step("a.sh", a),
    )


def _yaml() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = "a: 1\na: 2\n"
    return {"a.yaml": a}, (
        Step("a.yaml", f"# moved\n{a}"),
        Step("a.yaml", f"{a}b: 1\nb: 2\n", ("a.yaml:4",), ("a.yaml:3",)),
        Step("a.yaml", f"{a}c: 1\n"),
        Step("a.yaml", f"{a}c: [1, 2\nd: 3\n", ("a.yaml:4",), ("a.yaml:3",)),
        Step("a.yaml", f"{a}c: [1, 2]\n"),
        Step("a.yaml", f"{a}c: 1\n d: 2\n", ("a.yaml:3",), ("a.yaml:4",)),
    )


def _json() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = '{\n  "a": 1,\n  "a": 2\n}\n'
    return {"a.json": a}, (
        Step("a.json", "\n" + a),
        Step("a.json", a.replace("2\n", '2,\n  "b" 3\n'), ("a.json:4",)),
        Step("a.json", a.replace("2\n", '2,\n  "b": 3\n')),
        Step("a.json", a.replace("2\n", '2,\n  "b": 3,\n'), ("a.json:4",), ("a.json:5",)),
        Step("a.json", a),
        Step("a.json", a.replace("2\n", '2, "b": tru\n'), ("a.json:3",)),
    )


def _css() -> tuple[Mapping[str, str], tuple[Step, ...]]:
    a = "a { colr: red }\n"
    return {"a.css": a}, (
        Step("a.css", "\n" + a),
        Step("a.css", a + "b { color: }\n", ("a.css:2",)),
        Step("a.css", a + "b { color: red }\n"),
        Step("a.css", a + "b { color: red\n", ("a.css:3",)),
        Step("a.css", a),
        Step("a.css", a + "b { wdth: 1px }\n", ("a.css:2",)),
    )


_PY: Final = ("*.py",)
SCENARIOS: Final[Mapping[str, Scenario]] = {
    "pyright": Scenario("pyright-langserver --stdio", _PY, *_python_types()),
    "basedpyright": Scenario("basedpyright-langserver --stdio", _PY, *_python_types()),
    "ty": Scenario("ty server", _PY, *_python_types()),
    "ruff": Scenario("ruff server", _PY, *_python_names()),
    "pylsp": Scenario("pylsp", _PY, *_python_names()),
    "typescript": Scenario("typescript-language-server --stdio", ("*.ts",), *_typescript()),
    "tsc": Scenario("tsc --lsp --stdio", ("*.ts",), *_typescript()),
    "clangd": Scenario("clangd", ("*.cpp", "*.h"), *_c()),
    "gopls": Scenario("gopls", ("*.go",), *_go()),
    "gopls-2022": Scenario("gopls", ("*.go",), *_go()),
    "rust-analyzer": Scenario("rust-analyzer", ("*.rs",), *_rust()),
    "bash": Scenario("bash-language-server start", ("*.sh",), *_shell()),
    "yaml": Scenario("yaml-language-server --stdio", ("*.yaml",), *_yaml()),
    "json": Scenario("vscode-json-language-server --stdio", ("*.json",), *_json()),
    "css": Scenario("vscode-css-language-server --stdio", ("*.css",), *_css()),
}
"""By name: that of `core.checkers`, where it is known there."""

UNFIT: Final[Mapping[str, Scenario]] = {
    "pylsp-alone": SCENARIOS["pylsp"],
    "bash-alone": SCENARIOS["bash"],
    "typescript-7": SCENARIOS["typescript"],
    "rust-analyzer-alone": SCENARIOS["rust-analyzer"],
}
"""Servers without what they need: linters, shellcheck, a TypeScript that they know, rust-src."""
