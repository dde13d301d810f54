"""The desk's screens are tested as all others are."""

from tests.ui.screens.conftest import looks, painted, take, wait_no_longer_than_needed

__all__ = ["looks", "painted", "take", "wait_no_longer_than_needed"]
