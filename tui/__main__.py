"""`python -m tui` is `holdfast`."""

from tui.cli.main import main

raise SystemExit(main())
