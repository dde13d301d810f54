"""The record of a session: one JSONL file that is only ever appended to."""
