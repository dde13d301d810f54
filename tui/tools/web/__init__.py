"""Reading pages of the web: the request, and the answer as text."""
