"""Tokens and money by what they were spent on. `attribution` shares out the bills of a session,
`bills_in` and `rows_in` tell those of all sessions.

`bills` reads what was billed, `parts` what a request was made of, `shares` gives each part its
share, `index` keeps what was found, `days` tells days apart.
"""

from tui.context.usage.amounts import Amount, total_of
from tui.context.usage.bills import Bill, bills_of
from tui.context.usage.days import LocalDays
from tui.context.usage.index import BilledSession, bills_in, rows_in

__all__ = [
    "Amount",
    "Bill",
    "BilledSession",
    "LocalDays",
    "bills_in",
    "bills_of",
    "rows_in",
    "total_of",
]
