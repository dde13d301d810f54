"""Reading pages of the web: the request, and what comes back as text."""
