"""Make the manual's web pages from `tui/manual`: python .packaging/manual_site.py FOLDER

A page for each topic, an index of topics and headings, one style sheet, and the pictures that are
shown. There is no script in them, and nothing is fetched from elsewhere.
"""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tui.app import manual
from tui.core.project import REPOSITORY

ROOT = Path(__file__).parents[1]
MANUAL = ROOT / "tui" / "manual"
_COMMENT = re.compile(r"^<!--.*-->\n+", re.MULTILINE)

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Holdfast</title>
<meta name="description" content="{summary}">
<link rel="canonical" href="{address}">
<link rel="stylesheet" href="style.css">
</head>
<body>
<a class="skip" href="#page">Skip to the page</a>
<nav aria-label="Topics">
<p><a href="./">Holdfast</a></p>
<ul>
{topics}
</ul>
</nav>
<main id="page">
{body}
<footer>
<p>{around}</p>
<p><a href="{address}">{address}</a> · <a href="{source}">source</a></p>
</footer>
</main>
</body>
</html>
"""

_STYLE = """\
:root {
  --ground: #fbfaf7; --raised: #f1efe9; --text: #22262e; --quiet: #5b6472; --rule: #d9d5cb;
  --link: #0b6a73; color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0b1019; --raised: #182132; --text: #dde5f0; --quiet: #8e9bb4; --rule: #2c3950;
    --link: #62d2c6;
  }
}
* { box-sizing: border-box; }
html { background: var(--ground); color: var(--text); font: 16px/1.6 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 76rem; display: grid; grid-template-columns: 13rem 1fr; }
nav { padding: 1.5rem 1rem; border-right: 1px solid var(--rule); font-size: .95rem; }
nav p { margin: 0 0 .75rem; font-weight: 600; }
nav ul { margin: 0; padding: 0; list-style: none; position: sticky; top: 1.5rem; }
nav li { padding: .1rem 0; }
nav a[aria-current] { color: var(--text); font-weight: 600; }
main { min-width: 0; padding: 1.5rem clamp(1rem, 4vw, 3rem) 3rem; max-width: 58rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .5rem; }
h2 a, h3 a { color: inherit; text-decoration: none; }
h2 a:hover, h3 a:hover { text-decoration: underline; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre { font: .88em/1.5 ui-monospace, monospace; }
code { background: var(--raised); border-radius: 3px; padding: .1em .3em; }
pre { background: var(--raised); border: 1px solid var(--rule); border-radius: 6px;
  padding: .8rem 1rem; overflow-x: auto; }
pre code { background: none; padding: 0; font-size: 1em; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0;
  border-bottom: 1px solid var(--rule); }
img { max-width: 100%; height: auto; }
dt { margin-top: .9rem; font-weight: 600; }
dd { margin: 0; color: var(--quiet); }
footer { margin-top: 3rem; padding-top: .75rem; border-top: 1px solid var(--rule);
  color: var(--quiet); font-size: .9rem; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; }
@media (max-width: 50rem) {
  body { display: block; }
  nav { border: 0; border-bottom: 1px solid var(--rule); padding-bottom: .75rem; }
  nav ul { display: flex; flex-wrap: wrap; gap: 0 .9rem; position: static; }
}
"""


def make(folder: Path) -> None:
    """Write the site into a folder, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "style.css").write_text(_STYLE, encoding="utf-8")
    (folder / ".nojekyll").touch()
    index: list[str] = []
    for topic in manual.topics():
        body, headings = _body(topic.name, folder)
        index.append(_entry(topic, headings))
        _write(folder, topic.name, topic.title, topic.summary, body)
    summary = "The manual of Holdfast, a terminal agent that never loses work."
    listed = "\n".join(index)
    _write(folder, "", "The manual", summary, f"<h1>The manual</h1>\n<dl>\n{listed}\n</dl>")


def _entry(topic: manual.Topic, headings: list[tuple[str, str]]) -> str:
    links = " · ".join(
        f'<a href="{topic.name}.html#{slug}">{escape(text)}</a>' for slug, text in headings
    )
    head = f'<dt><a href="{topic.name}.html">{escape(topic.title)}</a></dt>'
    return f"{head}\n<dd>{escape(topic.summary)}</dd>\n<dd>{links}</dd>"


def _write(folder: Path, name: str, title: str, summary: str, body: str) -> None:
    rows = (
        f'<li><a href="{one}.html"{" aria-current=page" if one == name else ""}>{one}</a></li>'
        for one in manual.TOPICS
    )
    page = _PAGE.format(
        title=escape(title),
        summary=escape(summary),
        address=manual.address(name),
        topics="\n".join(rows),
        body=body,
        around=_around(name),
        source=f"{REPOSITORY}/blob/main/tui/manual/{name and f'{name}.md'}",
    )
    (folder / f"{name or 'index'}.html").write_text(page, encoding="utf-8")


def _around(name: str) -> str:
    """Links to the topics before and after."""
    names = ["", *manual.TOPICS, ""]
    at = names.index(name) if name else 0
    before, after = names[at - 1] if at else "", names[at + 1]
    links = [f'← <a href="{before}.html">{before}</a>'] if before else []
    links += [f'<a href="{after}.html">{after}</a> →'] if after else []
    return " · ".join(links)


def _body(name: str, folder: Path) -> tuple[str, list[tuple[str, str]]]:
    """A topic as HTML, and its headings by the names that links have. Copies its pictures."""
    text = _COMMENT.sub("", (MANUAL / f"{name}.md").read_text(encoding="utf-8"))
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    headings: list[tuple[str, str]] = []
    for token, inner in itertools.pairwise(tokens):
        if token.type == "heading_open" and token.tag != "h1":
            plain = "".join(one.content for one in inner.children or ())
            slug = re.sub(r"[^a-z0-9]+", "-", plain.casefold()).strip("-")
            token.attrSet("id", slug)
            if token.tag == "h2":
                headings.append((slug, plain))
        for one in token.children or ():
            _lead(one, folder)
    html = markdown.renderer.render(tokens, markdown.options, {})
    html = html.replace("<table>", '<div class="table"><table>')
    html = html.replace("</table>", "</table></div>")
    return re.sub(r'<(h[23]) id="([^"]+)">(.*?)</\1>', _linked, html), headings


def _linked(found: re.Match[str]) -> str:
    tag, slug, inner = found.groups()
    return f'<{tag} id="{slug}"><a href="#{slug}">{inner}</a></{tag}>'


def _lead(token: Token, folder: Path) -> None:
    """Let links of the source lead to pages, and pictures to copies of them."""
    if token.type == "link_open":
        target = str(token.attrGet("href"))
        token.attrSet("href", re.sub(r"^([a-z-]+)\.md\b", r"\1.html", target))
    elif token.type == "image":
        picture = (MANUAL / str(token.attrGet("src"))).resolve()
        shutil.copyfile(picture, folder / picture.name)
        token.attrSet("src", picture.name)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
