"""From the record to the request: pure functions that also say what they did and why."""
