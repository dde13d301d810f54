"""What the person configures: settings and where they come from, trust, API keys, own commands."""
