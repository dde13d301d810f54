"""The practice model: it replays a script, or answers a handful of phrases, offline.

It sees what any model sees, a request, and nothing else. What it did so far it reads from the
messages, so that a session of it can be saved, killed, resumed and handed to another model.
The faults of a real server can be put before its answers.
"""
