"""What the person configures: settings and their origin, their file, trust, keys, own commands."""
