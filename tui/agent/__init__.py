"""The agent: takes a prompt, publishes events, leaves a complete record."""
