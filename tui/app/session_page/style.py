"""The style of a page: light and dark, on paper, from 320 pixels on."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2126;--soft:#5b636d;--line:#dcdfe3;
--link:#1857b8;--bad:#b3261e;--good:#1b7340;--warn:#8f5a00;--badbg:#fdecea;
--system:#5d6b82;--tools:#8a5fb0;--messages:#2061b8;--results:#12806a;--thinking:#c07a12;
--call:#12806a;--agent:#8a5fb0;--wait:#96590a;--question:#b8448a;--track:#eceef0}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1c2026;--ink:#e6e9ec;
--soft:#a0a9b4;--line:#343b44;--link:#8ab8ff;--bad:#ff8f85;--good:#6fd39a;--warn:#f0b95a;--badbg:#3a1f1e;
--system:#8593aa;--tools:#b491da;--messages:#5b9bf0;--results:#3fbfa4;--thinking:#e3a144;
--call:#3fbfa4;--agent:#b491da;--wait:#e3a144;--question:#e587bf;--track:#2b3139}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;margin:0;background:var(--bg);color:var(--ink)}
header,main{max-width:76rem;margin:auto;padding:0 1.25rem}
header{padding-top:1.5rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .4rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.4rem 0 .8rem;padding-top:.8rem;border-top:1px solid var(--line)}
h3{font-size:.85rem;color:var(--soft);margin:1rem 0 .3rem;font-weight:600}
main>section:first-child h2{border:0;margin-top:.6rem}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
:target{background:color-mix(in srgb,var(--link) 18%,transparent)}
.meta,.note,.left,figcaption small,caption{color:var(--soft);font-size:.87rem;
overflow-wrap:anywhere}
.meta{margin:.1rem 0}
nav a{margin-right:1.2rem}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);
white-space:nowrap;margin:0}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.5rem;background:var(--card)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(12.5rem,1fr));gap:.7rem;margin:0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
.tile dt{font-size:.8rem;color:var(--soft)}
.tile dd{margin:0;font-size:1.3rem;font-weight:650;line-height:1.3}
.tile dd.more{font-size:.8rem;font-weight:400;color:var(--soft)}
.tile.bad{border-color:var(--bad)}
.tile.bad dd.more,.tile.bad dd:nth-child(2):last-child{color:var(--bad)}
.tile.good dd:nth-child(2){color:var(--good)}
.concerns{list-style:none;margin:0;padding:.5rem .9rem;background:var(--badbg);border-radius:.5rem}
.concerns li{display:flex;gap:.6rem;padding:.15rem 0;overflow-wrap:anywhere}
.concerns li>span{min-width:0}
code{font:.85em ui-monospace,monospace;background:var(--track);border-radius:.25rem;
padding:.05rem .3rem;display:inline-block;max-width:100%;overflow-wrap:anywhere}
.concerns.quiet{background:var(--card);border:1px solid var(--line)}
.quiet .sign{color:var(--soft)}
.sign{flex:none;width:1.1rem;text-align:center;color:var(--bad);font-weight:700}
.links{font-size:.87rem}.links a{margin-right:.25rem}
.calm{color:var(--good)}
figure{margin:0 0 1.4rem;min-width:0}
figcaption{font-weight:600;margin-bottom:.4rem}
.scroll{overflow-x:auto}
svg{display:block;width:100%;height:auto;font:11.5px system-ui,sans-serif;fill:var(--ink)}
svg.timeline{min-width:68rem}svg.night{min-width:38rem}
.money{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr));
gap:1.2rem 2rem}
.money svg{font-size:12.5px;max-width:28rem}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.82rem;color:var(--soft);
margin:0 0 .5rem;padding:0;list-style:none}
.legend i{display:inline-block;width:.9em;height:.9em;margin-right:.35em;vertical-align:-.08em;
border-radius:2px}
text.l,text.pause,.quiet,text.amount{fill:var(--soft)}
text.number{font-size:10.5px}
text.in{fill:var(--card);font-size:10.5px}
text.part{font-size:11px}.plate{fill:var(--bg);opacity:.7}
.between{stroke:var(--bg);stroke-width:1.2;fill:none}
.price{font-weight:600;text-decoration:none}
.price.break{fill:var(--bad)}.price.compaction{fill:var(--warn)}
text.sign{fill:var(--bad)}
.grid,.axis{stroke:var(--line);fill:none}
.edge{stroke:var(--ink);stroke-width:1.4;fill:none}
.guide{stroke-dasharray:3 3;fill:none}.guide.break{stroke:var(--bad)}
.guide.compaction{stroke:var(--warn)}
path.break{fill:var(--bad)}path.compaction{fill:var(--warn)}path.change{fill:var(--soft)}
path.prompt{fill:var(--card);stroke:var(--soft)}
.system{fill:var(--system)}.tools{fill:var(--tools)}.messages{fill:var(--messages)}
.results{fill:var(--results)}.thinking{fill:var(--thinking)}
path.c{opacity:.42}
.request{fill:var(--messages)}.call{fill:var(--call)}.agent,.job{fill:var(--agent)}
.question{fill:var(--question)}.wait{fill:var(--wait)}
rect.bad,path.bad{fill:var(--bad)}
.checks{fill:none}.checks.green{stroke:var(--good);stroke-width:2}
.checks.red{stroke:var(--bad);stroke-width:6}
.bed{fill:var(--bg)}
.sign.red,.sign.green{fill:none;stroke-width:2.4}.sign.red{stroke:var(--bad)}
.sign.green{stroke:var(--good)}
.files{fill:var(--good)}.cost{fill:var(--warn)}
.track{fill:var(--track)}.cached{fill:var(--messages);opacity:.45}.new{fill:var(--messages)}
.output{fill:var(--thinking)}
i.cached,i.new{background:var(--messages)}i.output{background:var(--thinking)}
i.system{background:var(--system)}i.tools{background:var(--tools)}
i.messages{background:var(--messages)}
i.results{background:var(--results)}i.thinking{background:var(--thinking)}
i.thin{height:.25em;vertical-align:.2em}
i.pale{background:var(--soft);opacity:.42}i.full{background:var(--soft)}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;margin:.4rem 0}
caption{text-align:left;padding-bottom:.2rem}
th,td{padding:.2rem .7rem .2rem 0;text-align:right;vertical-align:top;
border-bottom:1px solid var(--line);
white-space:nowrap}
th:first-child{text-align:left;font-weight:400;white-space:normal;min-width:9rem;
overflow-wrap:anywhere}
thead th,thead th:first-child{font-weight:600}
summary{cursor:pointer;color:var(--soft);font-size:.87rem;padding:.15rem 0}
.turn{background:var(--card);border:1px solid var(--line);border-radius:.5rem;margin:0 0 .8rem;
padding:.4rem .9rem}
.turn>summary{color:var(--ink);font-size:1rem;font-weight:600;overflow-wrap:anywhere}
.turn>summary small{color:var(--soft);font-weight:400;white-space:nowrap}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font:inherit;unicode-bidi:isolate;
border-left:3px solid var(--link);padding-left:.7rem}
pre.answer{border-color:var(--good)}
ol.steps{list-style:none;padding:0;margin:0;font-size:.85rem}
ul{margin:0;padding-left:1.1rem;font-size:.87rem}
.steps li,.turn ul li{overflow-wrap:anywhere;unicode-bidi:isolate}
.steps li{padding:.08rem .3rem .08rem .5rem;border-left:3px solid transparent}
.steps time{color:var(--soft);font-variant-numeric:tabular-nums;margin-right:.4rem}
details.inner{margin:.1rem 0 .3rem 1.4rem}
.steps .bad,.steps .red,.steps .trouble{border-color:var(--bad)}.steps .bad{color:var(--bad)}
.steps .green{border-color:var(--good)}.steps .break,.steps .compaction{border-color:var(--warn)}
b.bad,ul.bad{color:var(--bad)}
footer{color:var(--soft);font-size:.85rem;margin:2rem 0}
@media(max-width:30rem){body{font-size:15px}header,main{padding:0 .8rem}
.tiles{grid-template-columns:repeat(2,1fr)}.turn>summary small{white-space:normal}}
@media print{:root{color-scheme:light;--bg:#fff;--card:#fff}body{font-size:10pt}
header,main{max-width:none;padding:0 3px}
nav,.skip,.unseen,figure details:not([open]){display:none}
svg.night{min-width:0}svg.timeline{min-width:0;font-size:14.5px}
.timeline text.in,.timeline text.number{font-size:12.5px}
.timeline text.part{font-size:14px}
.scroll{overflow:visible}th,td{white-space:normal}
.tiles{grid-template-columns:repeat(5,1fr)}.tile dd{font-size:1rem}
.tile,figure,.legend,.concerns li,.steps li,.turn ul li,tr{break-inside:avoid}
h2,h3,figcaption,summary,caption{break-after:avoid}pre,p,li{orphans:3;widows:3}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
a{color:inherit}.money{grid-template-columns:repeat(2,1fr)}}
"""
