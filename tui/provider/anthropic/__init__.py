"""The Messages API through the Anthropic SDK; the only place that imports it.

    client          AnthropicProvider: a request goes out, parts come in
    batches         AnthropicBatches: many requests at once, at half the price
    client_factory  loads the SDK late, in a thread, and makes its client
    convert         requests and models in the form of the SDK
    read_ahead      the body of an answer, in few pieces
    stall_timeout   the time that an answer may be silent
    sse             bytes → events
    answer          events → deltas and the complete answer
    classify        every failure → one ProviderError
    error_rules     the table by which it decides, cloud_rules that of the clouds
    error_bodies    the content of an error's body: type, code, text, sizes

Importing this package loads none of the SDK.
"""

from tui.provider.anthropic.client import AnthropicProvider

__all__ = ["AnthropicProvider"]
