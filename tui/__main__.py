"""`python -m tui` is `holdfast`."""

from tui.cli.main import start

start()
