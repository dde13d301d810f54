"""The Messages API through the Anthropic SDK; the only place that imports it.

    sdk       loads it late, in a thread, and makes the client
    client    AnthropicProvider: a request goes out, parts come in
    shapes    requests and models as the SDK has them
    silence   how long it may be silent
    sse       bytes → events
    answer    events → deltas and the complete answer
    classify  whatever goes wrong → one ProviderError, by the table in `rules`
    texts     what the body of an error says
    sizes     the tokens that an overflow names

Importing this package loads none of the SDK.
"""

from tui.provider.anthropic.client import AnthropicProvider

__all__ = ["AnthropicProvider"]
