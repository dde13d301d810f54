"""The conversation without a toolkit, and everything that its front ends share.

`conversation`: the open session, its turns and what waits; `work` runs one thing at a time.
`frontend`: what it asks of the full screen, of plain lines, or of a test.
`open_session`: from a choice to an open session, with the questions on the way; `interruption`:
work that an earlier run left open; `error_options`: the ways on from a failed request.
`commands`: the table of slash commands, the router, the handlers; `models`: /model.
`drafts`, `attachments`, `send_queue`, `user_shell`, `prompt_history`: parts of a conversation.
`ports`: what the rest of the program is asked for; `program`: the composition root.
`options`, `launch_config`, `doctor`: the command line as data, the installation examined.
"""
