"""The record: one append-only JSONL file a session."""
