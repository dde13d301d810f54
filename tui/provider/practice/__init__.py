"""The practice model: it replays a script, or answers a handful of phrases, offline.

It sees only what any model sees: a request. It reads its own past actions from the messages, so
that its session can be saved, killed, resumed and handed to another model. The faults of a real
server can be put before its answers.
"""
