"""The clouds that serve the same models: how each is addressed and signed in to, and what it lacks.

All of it is data, as documented for November 2026 (the platform's own pages on Amazon Bedrock,
Google Cloud and Microsoft Foundry, and the clients of the SDK 2.14). The clients themselves are in
`tui.provider.anthropic.cloud_clients`; nothing here imports what a cloud's extra brings.

    cloud = access_of(config, os.environ)     the way to the configured cloud; None without one
    cloud.check()                             raises CredentialsError where something is missing
    cloud.id_of("claude-opus-5-5")            what the cloud calls a model
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tui.core.config import EVERY_MODEL, Config, Price, ProviderSettings
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import CredentialsError
from tui.core.late_pattern import late_pattern

AS_OF: Final = "2026-11"
REGIONAL: Final = 1.1
"""The price of an endpoint that keeps requests in a region, as a multiple of the global one's."""

COUNTS: Final = "count_tokens"
BATCHES: Final = "batches"
MODEL_LIST: Final = "models"

FEATURES: Final[Mapping[str, str]] = {
    COUNTS: "exact token counts before a request; without them, an estimate",
    MODEL_LIST: "a list of its models; without it, the catalog",
    BATCHES: "message batches, for `run --batch-api`",
    "web_search": "the server's own web search",
    "system_messages": "notices as system messages; without them, in your next prompt",
    "tool_additions": "tools added in mid-conversation; without that, a new tool list",
    "turn_effort": "effort changed in mid-conversation; without that, at the next break",
    "compaction_blocks": "summaries made by the server; without them, by a prompt",
    "updates": "thinking shown as progress notes",
    "binding_reports": "reports of dropped thinking",
    "diagnostics": "the reason why the cache was missed",
    "cache_life": "a cache that is kept for an hour",
}
"""What a server may have, by the names of `tui.provider.anthropic.convert` and those above."""

_NOWHERE: Final = frozenset(
    {MODEL_LIST, BATCHES, "tool_additions", "updates", "binding_reports", "diagnostics"}
)


@dataclass(frozen=True, slots=True)
class Cloud:
    """One cloud. `modules` are what its extra installs; `login` is the command that signs in;
    `lacks` are those of FEATURES that it doesn't have; `address_variable` names its address in the
    environment; `ids` are its names of models, where they differ. `request_mb` is the largest
    request that it takes."""

    kind: str
    title: str
    modules: tuple[str, ...]
    login: str
    address_variable: str
    lacks: frozenset[str]
    request_mb: int
    ids: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def extra(self) -> str:
        return f"holdfast[{self.kind}]"

    @property
    def request_bytes(self) -> int:
        return self.request_mb * 1_000_000


BEDROCK: Final = Cloud(
    kind="bedrock",
    title="Amazon Bedrock",
    modules=("boto3", "botocore"),
    login="aws sso login",
    address_variable="ANTHROPIC_BEDROCK_BASE_URL",
    lacks=_NOWHERE | {COUNTS, "web_search", "turn_effort", "compaction_blocks", "cache_life"},
    request_mb=20,
    # Models that InvokeModel alone serves; newer ones are `anthropic.` and their name.
    ids={
        "claude-opus-4-6": "global.anthropic.claude-opus-4-6-v1",
        "claude-sonnet-4-6": "global.anthropic.claude-sonnet-4-6",
        "claude-opus-4-5": "global.anthropic.claude-opus-4-5-20251101-v1:0",
        "claude-sonnet-4-5": "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
    },
)
VERTEX: Final = Cloud(
    kind="vertex",
    title="Google Cloud",
    modules=("google.auth", "requests"),
    login="gcloud auth application-default login",
    address_variable="ANTHROPIC_VERTEX_BASE_URL",
    lacks=_NOWHERE,
    request_mb=30,
    ids={
        "claude-opus-4-5": "claude-opus-4-5@20251101",
        "claude-sonnet-4-5": "claude-sonnet-4-5@20250929",
        "claude-haiku-4-5": "claude-haiku-4-5@20251001",
    },
)
FOUNDRY: Final = Cloud(
    kind="foundry",
    title="Microsoft Foundry",
    modules=("azure.identity",),
    login="az login",
    address_variable="ANTHROPIC_FOUNDRY_BASE_URL",
    lacks=_NOWHERE | {"system_messages", "turn_effort"},
    request_mb=32,
)
CLOUDS: Final[Mapping[str, Cloud]] = {one.kind: one for one in (BEDROCK, VERTEX, FOUNDRY)}

_PLAIN_NAME: Final = late_pattern(r"claude-[a-z0-9-]+")
_MESSAGES_ID: Final = late_pattern(r"anthropic\.claude-[a-z]+-(?:\d+(?:-\d{1,2})?|preview)")
"""Bedrock's names of models that it serves by the Messages API; all others, with a region, a
version or an ARN, are InvokeModel's."""
_FOUNDRY_KEY: Final = "ANTHROPIC_FOUNDRY_API_KEY"
BEDROCK_TOKEN: Final = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105 - the name of a variable
"""The variable with a key for all of Bedrock."""
AWS_KEY: Final = "ANTHROPIC_AWS_API_KEY"
"""The variable with a key that the SDK takes for Bedrock's Messages API, and for nothing else."""
_AZURE_TENANT: Final = "AZURE_TENANT_ID"
_AZURE_CLIENT: Final = "AZURE_CLIENT_ID"
_AZURE_IDENTITIES: Final = tuple(
    (credential, (name, frozenset(variables)))
    for credential, name, *variables in (
        ("environmentcredential", "AZURE_CLIENT_SECRET",
         _AZURE_CLIENT, _AZURE_TENANT, "AZURE_CLIENT_SECRET"),
        ("environmentcredential", "AZURE_CLIENT_CERTIFICATE_PATH",
         _AZURE_CLIENT, _AZURE_TENANT, "AZURE_CLIENT_CERTIFICATE_PATH"),
        ("environmentcredential", "AZURE_USERNAME",
         _AZURE_CLIENT, "AZURE_USERNAME", "AZURE_PASSWORD"),
        ("workloadidentitycredential", "AZURE_FEDERATED_TOKEN_FILE",
         "AZURE_AUTHORITY_HOST", _AZURE_TENANT, "AZURE_FEDERATED_TOKEN_FILE"),
    )
)  # fmt: skip
"""The variables that azure-identity reads, in its order: the credential as
AZURE_TOKEN_CREDENTIALS names it, the variable that it is known by, and all that it needs."""
_MANTLE_ADDRESS: Final = "ANTHROPIC_BEDROCK_MANTLE_BASE_URL"
_GOOGLE_FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"


@dataclass(frozen=True, slots=True)
class CloudAccess:
    """The way to one cloud, with what the settings and the environment say; no secret is in it.

    `address` is where requests go, `messages_address` where Bedrock's Messages API is; "" until
    what they need is set. `own_ids` are the person's own names of models. `identity` says what
    signs the requests to the configured model, as far as that is seen without asking.
    """

    cloud: Cloud
    region: str
    project: str
    profile: str
    address: str
    messages_address: str
    identity: str
    own_ids: Mapping[str, str] = field(default_factory=dict[str, str])

    def check(self) -> None:
        """Raise CredentialsError where a setting or the cloud's extra is missing. Reads the
        places of packages."""
        if not self.address or (self.cloud is BEDROCK and not self.region):
            message, hint = _UNSET[self.cloud.kind]
            raise CredentialsError(message, hint=hint)
        key = self.cloud is FOUNDRY and self.identity == _FOUNDRY_KEY
        missing = None if key else next((n for n in self.cloud.modules if not _there(n)), None)
        if missing:
            raise CredentialsError(
                f"{self.cloud.title} needs the package {missing.partition('.')[0]}, which isn't"
                " installed.",
                hint=f"Run pip install '{self.cloud.extra}'.",
            )

    def id_of(self, model: str) -> str:
        """Return what the cloud calls a model; a name that isn't known stays as it is."""
        if own := self.own_ids.get(model):
            return own
        if known := self.cloud.ids.get(model):
            return known
        if self.cloud is BEDROCK and _PLAIN_NAME.fullmatch(model):
            return f"anthropic.{model}"
        return model

    def takes_messages(self, model: str) -> bool:
        """True if a model's requests are in the form of the Messages API. Bedrock's older ones and
        those with a region are InvokeModel's."""
        return self.cloud is not BEDROCK or _MESSAGES_ID.fullmatch(self.id_of(model)) is not None

    def __str__(self) -> str:
        named = (self.region, self.project and f"project {self.project}")
        place = ", ".join(filter(None, named)) or self.address
        return f"{self.cloud.title} ({place})" if place else self.cloud.title


_UNSET: Final = {
    "bedrock": (
        "No region is set for Amazon Bedrock.",
        "Set region under [provider] in config.toml, or AWS_REGION.",
    ),
    "vertex": (
        "No region is set for Google Cloud.",
        "Set region under [provider] in config.toml, or CLOUD_ML_REGION.",
    ),
    "foundry": (
        "No resource is set for Microsoft Foundry.",
        "Set resource under [provider] in config.toml, or ANTHROPIC_FOUNDRY_RESOURCE.",
    ),
}


def access_of(config: Config, env: Mapping[str, str]) -> CloudAccess | None:
    """Return the way to the cloud that the settings name; None where they name none. Reads AWS'
    own configuration where nothing else names a region."""
    settings = config.provider
    if (cloud := CLOUDS.get(settings.kind)) is None:
        return None
    region, project = "", ""
    messages = ""
    address = config.base_url.rstrip("/")
    own = {name: one.id for name, one in settings.models.items() if one.id}
    match cloud.kind:
        case "bedrock":
            region = settings.region or _aws_region(settings, env)
            messages = f"{address}/anthropic" if address else env.get(_MANTLE_ADDRESS, "")
            if region and not address:
                address = f"https://bedrock-runtime.{region}.amazonaws.com"
                messages = messages or f"https://bedrock-mantle.{region}.api.aws/anthropic"
        case "vertex":
            region = settings.region or env.get("CLOUD_ML_REGION", "") or "global"
            project = settings.project or env.get("ANTHROPIC_VERTEX_PROJECT_ID", "")
            address = address or _google_address(region)
        case _:
            resource = settings.resource or env.get("ANTHROPIC_FOUNDRY_RESOURCE", "")
            if resource and not address:
                address = f"https://{resource}.services.ai.azure.com/anthropic"
    access = CloudAccess(cloud, region, project, settings.profile, address, messages, "", own)
    return replace(access, identity=_identity(access, config.model, env))


def _google_address(region: str) -> str:
    """The address of a location of Google's: the SDK's client takes the same."""
    match region:
        case "global":
            return "https://aiplatform.googleapis.com/v1"
        case "us" | "eu":
            return f"https://aiplatform.{region}.rep.googleapis.com/v1"
        case _:
            return f"https://{region}-aiplatform.googleapis.com/v1"


def _aws_region(settings: ProviderSettings, env: Mapping[str, str]) -> str:
    """The region of the environment, else that of the profile in AWS' own configuration."""
    if named := env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION"):
        return named
    home = Path(env.get("HOME", "") or os.path.expanduser("~"))  # noqa: PTH111 - env may lack it
    file = Path(env.get("AWS_CONFIG_FILE", "") or home / ".aws" / "config").expanduser()
    profile = settings.profile or env.get("AWS_PROFILE", "") or "default"
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(file, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return ""
    section = "default" if profile == "default" else f"profile {profile}"
    return parser.get(section, "region", fallback="").strip()


def _identity(access: CloudAccess, model: str, env: Mapping[str, str]) -> str:
    """Name the identity that signs the requests to a model, by the order in which the SDK and the
    cloud's library look for it (anthropic 2.14, botocore 1.44, google-auth 2.63, azure-identity
    1.27)."""
    match access.cloud.kind:
        case "bedrock":
            return _aws_identity(access, model, env)
        case "vertex":
            return _GOOGLE_FILE if env.get(_GOOGLE_FILE) else "your Google credentials"
        case _:
            return _azure_identity(env)


def _aws_identity(access: CloudAccess, model: str, env: Mapping[str, str]) -> str:
    if access.profile:
        return f"AWS profile {access.profile}"
    if env.get(BEDROCK_TOKEN):
        return BEDROCK_TOKEN
    if env.get(AWS_KEY) and access.takes_messages(model):
        return AWS_KEY
    if env.get("AWS_ACCESS_KEY_ID"):
        return "AWS_ACCESS_KEY_ID"
    if all(map(env.get, ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"))):
        return "AWS_WEB_IDENTITY_TOKEN_FILE"
    named = env.get("AWS_PROFILE")
    return f"AWS profile {named}" if named else "your AWS credentials"


def _azure_identity(env: Mapping[str, str]) -> str:
    if env.get(_FOUNDRY_KEY):
        return _FOUNDRY_KEY
    chosen = env.get("AZURE_TOKEN_CREDENTIALS", "").strip().lower()
    for credential, (name, variables) in _AZURE_IDENTITIES:
        if chosen in {"", "prod", credential} and variables <= env.keys():
            return name
    return "your Azure sign-in"


def regional_prices(access: CloudAccess) -> dict[str, Price]:
    """The prices of an endpoint that keeps requests in a region: a multiple of the usual ones, for
    all models but those that go to the global one."""
    match access.cloud.kind:
        case "bedrock":
            routed = [name for name, id_ in BEDROCK.ids.items() if id_.startswith("global.")]
            whole = {name: Price(times=1.0) for name in routed}
            own = {name: Price(times=REGIONAL) for name in access.own_ids}
            own |= {
                n: Price(times=1.0) for n, i in access.own_ids.items() if i.startswith("global.")
            }
            whole |= own
            return {EVERY_MODEL: Price(times=REGIONAL)} | whole
        case "vertex" if access.region != "global":
            return {EVERY_MODEL: Price(times=REGIONAL)}
        case _:
            return {}


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False
