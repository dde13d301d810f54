"""Models behind one port: the Anthropic SDK, the practice model, and decorators around them."""
