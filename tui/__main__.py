"""`python -m tui` is `holdfast`."""

from tui.cli import main

raise SystemExit(main())
