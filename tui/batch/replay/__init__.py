"""Replays: recorded prompts, run again in the workspace as it was, and judged by its checks."""
