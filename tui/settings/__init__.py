"""The person's configuration: settings and where they come from, trust, API keys, own commands."""
