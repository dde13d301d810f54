"""The table that assigns each error answer to a class. The first matching rule decides; where a
cloud is asked, those of `cloud_rules` come before.

Above each rule is a text as servers really send it.
"""

from __future__ import annotations

from typing import Final

from tui.provider.anthropic.error_rule import AGAIN, OTHER_MODEL, ErrorRule, words
from tui.provider.anthropic.error_sizes import AFFORDED, ANSWER_LIMITS

_LENGTH: Final = (
    r"(?:\bmax_?(?:completion_|output_?|new_)?tokens\b|maximum (?:output )?tokens|"
    r"model_?max_?output)"
)
_COMPLAINT: Final = (
    r"too (?:large|high|big|long)|exceed|out of range|above|invalid|not valid|非法|lower|smaller|"
    r"reduce|not allowed"
)


OVERFLOW: Final = words(
    # Anthropic: prompt is too long: 213462 tokens > 200000 maximum
    r"prompt is too long",
    # Anthropic: input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000
    r"exceed context limit",
    # Bedrock: Input is too long for requested model.
    r"input is too long for requested model",
    # OpenAI: Your input exceeds the context window of this model.
    r"exceeds the context window",
    # Google: The input token count (1196265) exceeds the maximum number of tokens allowed
    r"input token count.*exceeds the maximum",
    # xAI: This model's maximum prompt length is 131072 but the request contains 537812 tokens.
    r"maximum prompt length is \d",
    # Groq: Please reduce the length of the messages or completion.
    r"reduce the length of the messages",
    # OpenRouter: This endpoint's maximum context length is 131072 tokens.
    r"maximum context length is [\d,]+ tokens",
    # Copilot: prompt token count of 130000 exceeds the limit of 128000
    r"exceeds the limit of \d",
    # llama.cpp: the request exceeds the available context size, try increasing it
    r"exceeds the available context size",
    # LM Studio: The number of tokens to keep … is greater than the context length.
    r"greater than the context length",
    # MiniMax: invalid params, context window exceeds limit
    r"context window exceeds limit",
    # Kimi: Your request exceeded model token limit: 262144
    r"exceeded model token limit",
    # Mistral: Prompt … too large for model with 131072 maximum context length
    r"too large for model with \d+ maximum context length",
    r"model_context_window_exceeded",
    r"context_length_exceeded",
    # TGI: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: …
    r"`inputs` tokens \+ `max_new_tokens`",
    # vLLM: The prompt (total length 25938) is too long to fit into the model (context length 4096).
    r"too long to fit into the model",
    # SGLang: The input (9000 tokens) is longer than the model's context length (8192 tokens).
    r"longer than the model's (?:maximum )?context length",
    r"exceeds the model's maximum context",
    # Cerebras: Current length is 9000 while limit is 8192
    r"current length is \d+ while limit is",
    # llama-cpp-python: Requested tokens (516) exceed context window of 512
    r"exceeds? context window of",
    # DashScope: Range of input length should be [1, 129024]
    r"range of input length should be",
    # Moonshot: model max length exceeded, max length:8192
    r"model max length exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"tool output too large",
    r"tool_result too large",
)
"""The messages of servers whose window is shorter than the prompt."""

NOT_OVERFLOW: Final = words(
    # Groq: Request too large for model … on tokens per minute (TPM): Limit 6000
    r"tokens?[ -]per[ -]minute|\btpm\b",
    # Bedrock: Too many tokens, please wait before trying again.
    r"wait before trying again|throttl",
    # too many tokens: the rate limit of 80,000 input tokens is reached
    r"rate.?limit",
    r"billing|credit balance|quota",
    # Reasoning is mandatory for this endpoint and cannot be disabled.
    r"reasoning.{0,20}(mandatory|required|constraint|cannot be disabled)|requires reasoning",
    # Model context window too small (4096 tokens). Minimum is 16000.
    r"context window (is )?too small",
)
"""Texts that mention tokens or windows and mean something else."""

ANSWER_LENGTH: Final = words(
    rf"{_LENGTH}.{{0,60}}(?:{_COMPLAINT})",
    rf"(?:{_COMPLAINT}).{{0,60}}{_LENGTH}",
)
"""Texts that complain about the length of the answer, without a number that can be read."""

NOT_ANSWER_LENGTH: Final = words(
    # OpenAI: Unsupported parameter: 'max_tokens' is not supported with this model. Use
    # 'max_completion_tokens' instead.
    r"unsupported parameter|not supported with this model",
    # Volcengine: max_tokens and max_completion_tokens cannot be set at the same time
    r"at the same time",
    # OpenAI: … model output limit was reached. Please try again with higher max_tokens.
    r"higher max_tokens",
    # Anthropic: `max_tokens` must be greater than `thinking.budget_tokens`.
    r"budget_tokens|greater than (?:0|zero)|at least \d|expected an integer|field required",
    # Fireworks: Requests with max_tokens > 4096 must have stream=true
    r"stream ?= ?true",
)

_SHORTER = "Set max_output under [provider] in config.toml to fewer tokens."

RULES: Final[tuple[ErrorRule, ...]] = (
    # OpenRouter, 402: This request requires more credits, or fewer max_tokens. You requested up to
    # 32000 tokens, but can only afford 27342. … The check before the request costs nothing, so an
    # answer that can be paid is asked for, if that is more than a few words.
    ErrorRule(
        error_class="billing",
        headline="The account can't pay for an answer as long as the one asked for",
        hint="Add credit with your provider, or ask for shorter answers: max_output under "
        "[provider] in config.toml.",
        statuses=frozenset({402}),
        text=words(rf"fewer max_tokens.{{0,80}}{AFFORDED}"),
        final=True,
        answer=True,
    ),
    # The same: … but can only afford 222. …
    ErrorRule(
        error_class="billing",
        headline="The account can't pay for this request",
        hint="Add credit with your provider, or ask for shorter answers: max_output under "
        "[provider] in config.toml.",
        statuses=frozenset({402}),
        text=words(r"fewer max_tokens"),
        final=True,
    ),
    # 402 "billing_error"; 400 Your credit balance is too low to access the Anthropic API. …
    # 429 with details.error_code "enforced_spend_limit_reached": waiting a minute does not help
    ErrorRule(
        error_class="billing",
        headline="The account can't pay for this request",
        hint="Add credit, raise the spend limit with your provider, or use another key.",
        statuses=frozenset({402}),
        types=frozenset({"billing_error"}),
        codes=words(r"spend_limit_reached", r"billing", r"not_billable", r"insufficient_quota"),
        final=True,
    ),
    ErrorRule(
        error_class="billing",
        headline="The account can't pay for this request",
        hint="Add credit with your provider, or use another key.",
        statuses=frozenset({400, 403, 429}),
        text=words(r"credit balance is too low", r"exceeded your current quota"),
        final=True,
    ),
    # 511 Network Authentication Required: a captive portal; 407 Proxy Authentication Required
    ErrorRule(
        error_class="network",
        headline="The network wants a login before it lets you reach {url}",
        hint="Open a web page in a browser and log in, or set the proxy's name and password.",
        statuses=frozenset({407, 511}),
        final=True,
    ),
    # 413 request_too_large: Request exceeds the maximum size
    ErrorRule(
        error_class="payload_too_large",
        headline="The request is larger than {url} accepts",
        hint="Shorten it with /compact, or start a new session with /new.",
        statuses=frozenset({413}),
        types=frozenset({"request_too_large"}),
        unless=NOT_OVERFLOW,
        final=True,
    ),
    # 429 rate_limit_error: This request would exceed your organization's rate limit of …
    # 413 Request too large for model … on tokens per minute (TPM): Limit 6000, Requested 9420
    ErrorRule(
        error_class="rate_limit",
        headline="The server's rate limit is reached",
        hint=f"{AGAIN}, or {OTHER_MODEL}.",
        statuses=frozenset({429}),
        types=frozenset({"rate_limit_error"}),
    ),
    ErrorRule(
        error_class="rate_limit",
        headline="The server's rate limit is reached",
        hint=f"{AGAIN}, or {OTHER_MODEL}.",
        statuses=frozenset({200, 400, 413, 422, 500, 503}),
        text=words(
            r"tokens?[ -]per[ -]minute",
            r"\btpm\b",
            r"rate.?limit",
            r"too many requests",
            # Bedrock: Too many tokens, please wait before trying again.
            r"wait before trying again",
            r"throttl",
        ),
    ),
    # 401 authentication_error: invalid x-api-key
    ErrorRule(
        error_class="auth",
        headline="{url} rejected the API key",
        hint="Check ANTHROPIC_API_KEY or the saved key; `holdfast doctor` tests it.",
        statuses=frozenset({401}),
        types=frozenset({"authentication_error"}),
    ),
    # 403 permission_error: Your API key does not have permission to use the specified resource.
    ErrorRule(
        error_class="auth",
        headline="This API key isn't allowed to do this",
        hint=f"Use another key, or {OTHER_MODEL}; `holdfast doctor` tests the key.",
        statuses=frozenset({403}),
        types=frozenset({"permission_error"}),
    ),
    # 400 max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for …
    ErrorRule(
        error_class="invalid_request",
        headline="{model} doesn't write answers that long",
        hint=_SHORTER,
        statuses=frozenset({200, 400, 422, 500}),
        text=ANSWER_LIMITS,
        unless=words(r"`inputs` tokens \+"),
        final=True,
        answer=True,
    ),
    # 400 prompt is too long: 213462 tokens > 200000 maximum
    ErrorRule(
        error_class="context_overflow",
        headline="The conversation is too long for {model}",
        hint="Shorten it with /compact, or start a new session with /new.",
        statuses=frozenset({200, 400, 422, 500}),
        text=OVERFLOW,
        unless=NOT_OVERFLOW,
        final=True,
    ),
    ErrorRule(
        error_class="context_overflow",
        headline="The conversation is too long for {model}",
        hint="Shorten it with /compact, or start a new session with /new.",
        types=frozenset({"exceed_context_size_error", "context_length_exceeded"}),
        codes=words(r"^context_length_exceeded$", r"^model_context_window_exceeded$"),
        final=True,
    ),
    # 400 max_tokens is too large for this model
    ErrorRule(
        error_class="invalid_request",
        headline="{model} doesn't write answers that long",
        hint=_SHORTER,
        statuses=frozenset({200, 400, 422}),
        text=ANSWER_LENGTH,
        unless=NOT_ANSWER_LENGTH,
        final=True,
        answer=True,
    ),
    # 404 not_found_error: model: claude-nothing-1
    # 404 of Ollama: model "x" not found, try pulling it first
    ErrorRule(
        error_class="not_found",
        headline="There is no model {model} at {url}",
        hint="Choose one that the server offers: /model or --model.",
        statuses=frozenset({404}),
        types=frozenset({"not_found_error"}),
        text=words(r"\bmodels?\b"),
    ),
    # 400 OpenAI's and LM Studio's: invalid model; model_not_found
    ErrorRule(
        error_class="not_found",
        headline="There is no model {model} at {url}",
        hint="Choose one that the server offers: /model or --model.",
        statuses=frozenset({400}),
        codes=words(r"^model_not_found$"),
        text=words(r"\binvalid model\b", r"model .{1,80} (not found|does not exist)"),
    ),
    # 404 404 page not found; 405 Method Not Allowed; 307 to another address
    ErrorRule(
        error_class="not_found",
        headline="There is no Messages API at {url}",
        hint="Check base_url in config.toml or ANTHROPIC_BASE_URL.",
        statuses=frozenset({404, 405, 410, *range(300, 400)}),
        types=frozenset({"not_found_error"}),
    ),
    # 529 overloaded_error: Overloaded; the same as an event in a stream
    ErrorRule(
        error_class="overloaded",
        headline="{model} is overloaded",
        hint=f"{AGAIN}, or {OTHER_MODEL}.",
        statuses=frozenset({529}),
        types=frozenset({"overloaded_error"}),
    ),
    # 200 of a gateway, in its own words: Service tier capacity exceeded
    ErrorRule(
        error_class="overloaded",
        headline="{model} is overloaded",
        hint=f"{AGAIN}, or {OTHER_MODEL}.",
        statuses=frozenset({200}),
        text=words(
            r"\boverloaded\b",
            r"capacity exceeded",
            r"\bat capacity\b",
            r"(?:temporarily|service) unavailable",
        ),
    ),
    # 504 timeout_error: Request timed out; 408; 524 of a CDN
    ErrorRule(
        error_class="timeout",
        headline="The server gave up waiting",
        hint=f"{AGAIN}.",
        statuses=frozenset({408, 504, 524}),
        types=frozenset({"timeout_error"}),
    ),
    # 500 api_error: Internal server error; 502 and 503 of a gateway; 409 conflict_error
    ErrorRule(
        error_class="server",
        headline="The server failed",
        hint=f"{AGAIN}.",
        statuses=frozenset({409, *range(500, 600)}),
        types=frozenset({"api_error", "conflict_error"}),
    ),
    # 400 messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a
    # different conversation. …
    # 400 messages.1.content.0: Invalid `signature` in `thinking` block
    # 400 `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be
    # modified. …
    ErrorRule(
        error_class="invalid_request",
        headline="The server rejected the request",
        hint="Check the session with /repair, or start a new one with /new.",
        statuses=frozenset({400, 422}),
        types=frozenset({"invalid_request_error"}),
        text=words(
            r"bound to a different conversation",
            r"invalid `?signature`?",
            r"thinking`? blocks .{0,80}cannot be modified",
        ),
        thinking=True,
    ),
    # 400 messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: …
    ErrorRule(
        error_class="invalid_request",
        headline="The server rejected the request",
        hint="Check the session with /repair, or start a new one with /new.",
        statuses=frozenset(range(400, 500)),
        types=frozenset({"invalid_request_error"}),
    ),
    # an `error` event of an unknown type; the rule for everything that no other matches
    ErrorRule(
        error_class="unknown",
        headline="The server reported an error",
        hint="Send the prompt again; the log file has the details.",
    ),
)


def rule_for(status: int, kind: str, code: str, text: str, *, cloud: bool) -> ErrorRule:
    """The rule of an error: the first that matches, those of the clouds before where one is
    asked."""
    rules = RULES
    if cloud:
        from tui.provider.anthropic.cloud_rules import CLOUD_RULES  # noqa: PLC0415 - few ask one

        rules = (*CLOUD_RULES, *RULES)
    return next((rule for rule in rules if rule.matches(status, kind, code, text)), RULES[-1])
