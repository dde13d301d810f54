"""One fault, as scripts and the drill write it down."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tui.provider.practice.rejections import REJECTIONS

Chars = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One fault: exactly one of the first eight fields is set.

    `status` is an HTTP answer, with `retry_after` seconds, the server's `message` and error
    `type`, or the title of an `html` page in their place; `rejected` is a 400 with the text of a
    B number (`tui.provider.practice.rejections`). `cut_after` and `eof_after` end the stream
    after so many characters, by a lost connection and without the closing event; `stall_s` is a
    silence that ends in a timeout, `slow_s` one that ends well; `bad_json` breaks the input of
    the last tool call. `after` lets a status, a stall or an overflow come after so many
    characters, in mid-stream.

    `overflow` says that the prompt is too long: `true` once, `"until_smaller"` as long as the
    request is not smaller than the first that it met, `"max_tokens"` as long as its `max_tokens`
    is not lower.
    """

    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    rejected: str | None = None
    cut_after: Chars | None = None
    eof_after: Chars | None = None
    stall_s: Seconds | None = None
    slow_s: Seconds | None = None
    overflow: bool | Literal["until_smaller", "max_tokens"] = False
    bad_json: bool = False
    retry_after: Seconds | None = None
    message: str | None = None
    type: str | None = None
    html: str | None = None
    after: Chars = 0

    def __post_init__(self) -> None:
        timed = (self.cut_after, self.eof_after, self.stall_s, self.slow_s)
        named = (self.status, self.rejected, *timed)
        kinds = sum(value is not None for value in named) + bool(self.overflow) + self.bad_json
        if kinds != 1:
            raise ValueError(
                "a fault is exactly one of status, rejected, cut_after, eof_after, stall_s, "
                "slow_s, overflow, bad_json"
            )
        if self.status is None:
            for name in ("retry_after", "message", "type", "html"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} goes with status")
        elif self.status < 400 and self.html is None:
            raise ValueError("a status below 400 needs an html page to be a fault")
        if self.rejected is not None and self.rejected not in REJECTIONS:
            raise ValueError(f"rejected is one of {', '.join(REJECTIONS)}")


DRILL: dict[str, Fault] = {
    "429": Fault(status=429, retry_after=2),
    "529": Fault(status=529),
    "cut": Fault(cut_after=40),
    "eof": Fault(eof_after=40),
    "stall": Fault(stall_s=8, after=20),
    "overflow": Fault(overflow=True),
    "badjson": Fault(bad_json=True),
    "auth": Fault(status=401),
    "slow": Fault(slow_s=8),
    "park": Fault(status=429, retry_after=90),
    "400": Fault(rejected="B07"),
}
"""The faults of `holdfast drill`, by name."""
