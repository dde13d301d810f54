"""The rules for what the clouds say, before those of `error_rules`: the first that matches decides.

Above each rule is a text as the clouds really send it.
"""

from __future__ import annotations

from typing import Final

from tui.provider.anthropic.error_rule import AGAIN, OTHER_MODEL, ErrorRule, words

CLOUD_RULES: Final[tuple[ErrorRule, ...]] = (
    # Bedrock, 429 ThrottlingException: Too many tokens per day, please wait before trying again.
    ErrorRule(
        error_class="rate_limit",
        headline="Your account's tokens for today are used up",
        hint=f"Ask for a larger quota in the cloud's console, or {OTHER_MODEL}.",
        statuses=frozenset({200, 429}),
        text=words(r"tokens per day"),
        final=True,
    ),
    # Bedrock, 400 ServiceQuotaExceededException: Your request exceeds the service quota for your
    # account. …
    ErrorRule(
        error_class="rate_limit",
        headline="The request exceeds a quota of your account",
        hint=f"Ask for a larger quota in the cloud's console, or {OTHER_MODEL}.",
        types=frozenset({"ServiceQuotaExceededException"}),
        final=True,
    ),
    # Google, 429 RESOURCE_EXHAUSTED: Quota exceeded for aiplatform.googleapis.com/… with base
    # model: anthropic-claude-sonnet-4. Please submit a quota increase request. …
    ErrorRule(
        error_class="rate_limit",
        headline="A quota of your project is reached",
        hint=f"{AGAIN}; if that keeps happening, ask for a larger quota in the cloud's console.",
        statuses=frozenset({429}),
        text=words(r"quota exceeded for"),
    ),
    # Bedrock, 429 ModelNotReadyException: The model specified in the request is not ready to serve
    # inference requests. …
    ErrorRule(
        error_class="overloaded",
        headline="{model} isn't ready",
        hint=f"{AGAIN}, or {OTHER_MODEL}.",
        types=frozenset({"ModelNotReadyException"}),
    ),
    # Bedrock, 400: Invocation of model ID anthropic.claude-sonnet-4-5-20250929-v1:0 with on-demand
    # throughput isn't supported. Retry your request with the ID or ARN of an inference profile that
    # contains this model.
    ErrorRule(
        error_class="not_found",
        headline="{id} is only served through an inference profile",
        hint="Name one: the model's id with global., us. or eu. before it (-m), or an ARN as its"
        " id under [provider.models] in config.toml.",
        statuses=frozenset({400}),
        text=words(r"on-demand throughput"),
        final=True,
    ),
    # Bedrock, 400: The provided model identifier is invalid.
    # Bedrock, 404: Could not resolve the foundation model from the provided model identifier.
    # Google, 404 NOT_FOUND: Publisher Model `projects/…/models/…` was not found or your project
    # does not have access to it. …
    ErrorRule(
        error_class="not_found",
        headline="{url} doesn't have {id}",
        hint=f"It may be in another region: set region under [provider], or {OTHER_MODEL}.",
        statuses=frozenset({400, 404}),
        types=frozenset({"not_found_error"}),
        text=words(r"model identifier", r"publisher model .{1,300} (?:was )?not found", r"^model:"),
        final=True,
    ),
    # Foundry, 404 DeploymentNotFound: The API deployment for this resource does not exist. If you
    # created the deployment within the last 5 minutes, please wait a moment and try again.
    ErrorRule(
        error_class="not_found",
        headline="The resource has no deployment {id}",
        hint="Name one of its deployments (-m), or set the id of {model} under [provider.models] in"
        " config.toml.",
        statuses=frozenset({404}),
        codes=words(r"^DeploymentNotFound$"),
        text=words(r"deployment .{0,40}(?:does not exist|not found)"),
        final=True,
    ),
    # Bedrock, 403 AccessDeniedException: You don't have access to the model with the specified
    # model ID.
    # Google, 400 FAILED_PRECONDITION: Project `…` is not allowed to use Publisher Model `…`
    ErrorRule(
        error_class="auth",
        headline="Your account has no access to {id}",
        hint=f"Ask for it in the cloud's console, or {OTHER_MODEL}.",
        statuses=frozenset({400, 403}),
        text=words(
            r"access to the model",
            r"not allowed to use publisher model",
            r"not available for this account",
        ),
        final=True,
    ),
    # Bedrock, 403 ExpiredTokenException: The security token included in the request is expired
    # Bedrock, 403 UnrecognizedClientException: The security token included in the request is
    # invalid.
    # Google, 401 UNAUTHENTICATED: Request had invalid authentication credentials. …
    # Foundry, 401: Access denied due to invalid subscription key or wrong API endpoint. …
    ErrorRule(
        error_class="auth",
        headline="{url} doesn't accept your sign-in",
        hint="{sign_in}",
        statuses=frozenset({401}),
        types=frozenset(
            {"ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException"}
        ),
        final=True,
    ),
    ErrorRule(
        error_class="auth",
        headline="{url} doesn't accept your sign-in",
        hint="{sign_in}",
        statuses=frozenset({403}),
        text=words(r"security token", r"signature"),
        final=True,
    ),
    # Bedrock, 403 AccessDeniedException: User: arn:aws:… is not authorized to perform: bedrock:… on
    # resource: …
    # Google, 403 PERMISSION_DENIED: Permission 'aiplatform.endpoints.predict' denied on resource
    # '…' (or it may not exist).
    ErrorRule(
        error_class="auth",
        headline="Your account may not use {id} here",
        hint="Have the right to call models added to it in the cloud's console, or sign in as"
        " another: {sign_in}",
        statuses=frozenset({403}),
        types=frozenset({"AccessDeniedException"}),
        final=True,
    ),
    # Bedrock, 424 ModelErrorException, ModelStreamErrorException: An error occurred while streaming
    # the response. Retry your request.
    ErrorRule(
        error_class="server",
        headline="The model failed",
        hint=f"{AGAIN}.",
        statuses=frozenset({424}),
        types=frozenset({"ModelErrorException", "modelStreamErrorException"}),
    ),
)
