"""The tool calls of an answer, each on five stations: parse, decide, run, confine, finish."""
