"""The Messages API through the Anthropic SDK; the only place that imports it.

    sdk       loads it late, in a thread, and makes the client
    client    AnthropicProvider: a request goes out, parts come in
    sse       bytes → events
    answer    events → deltas and the complete answer
    classify  whatever goes wrong → one ProviderError

Importing this package loads none of the SDK.
"""

from tui.provider.anthropic.client import AnthropicProvider

__all__ = ["AnthropicProvider"]
