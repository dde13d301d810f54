"""The golden corpus: what every front end makes of 200 small sessions, kept line by line.

    records.jsonl, events.jsonl   the material: several of each type of record and class of event
    sessions.py                   deals it out into sessions, and plays and imports some more
    forms.py                      makes a form of a session: a request, a screen, an export, …
    forms/NAME.txt                what it made when the corpus was renewed last
    silences.py                   what a front end says nothing of, and why

`python -m tests.golden` renews the corpus and says what changed. Requests, stream-json and records
may not change at all; a screen, a line or an export may only gain lines. Anything else needs
`--lost`, and a reason in the commit.
"""
