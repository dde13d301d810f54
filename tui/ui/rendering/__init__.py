"""How events become widgets: answers that stream, tool calls, requests in trouble, old sessions."""
