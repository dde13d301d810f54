"""The conversation: a line-API view over items; its cost depends on what is visible."""
