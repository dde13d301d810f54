"""Where tokens and money went. `attribute` shares out the bills of a session, `usage_index` keeps
that of all sessions.

`bills` reads what was billed, `parts` what a request was made of, `shares` gives each part its
share, `attribution` puts them into rows.
"""
