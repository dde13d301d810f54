"""Loopback servers that stand for the clouds: they check what signs a request, take it in the form
of their platform, and answer in its format. What is in the request, the strict server judges.

    async with CloudServer("bedrock", {"turns": [{"text": "Hello."}]}) as server:
        …  server.url, server.refused (why a request was not let in)

Bedrock has two forms: InvokeModel, with the model in the path and Amazon's event stream, and the
Messages API below `/anthropic`. The signature is recomputed by botocore's own signer; Google's
tokens come from a token endpoint that checks the assertion of a service account; Foundry takes a
key or a token of Entra's. `python -m tests.support.clouds KIND --port N` serves what the prompt
spells out, as `tests.desk.real.model` does; a line on its input plays a fault of the cloud.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import struct
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import parse_qs, unquote

import h11
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.server import Answer, LoopbackServer
from tests.support.server_errors import Rejection
from tests.support.server_http import Connection, SeenRequest
from tests.support.server_script import Json, Script

Kind: TypeAlias = Literal["bedrock", "vertex", "foundry"]

ACCESS_KEY: Final = "AKIDEXAMPLE"
SECRET_KEY: Final = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
BEARER: Final = "bedrock-api-key-ZXhhbXBsZQ=="
FOUNDRY_KEY: Final = "0123456789abcdef0123456789abcdef"
ENTRA_TOKEN: Final = "eyJ.entra.token"
GOOGLE_TOKEN: Final = "ya29.a0ExampleToken"
PROJECT: Final = "example-project"
ACCOUNT: Final = "agent@example-project.iam.gserviceaccount.com"
_SKEW_S: Final = 900

FAULTS: Final[Mapping[str, Json]] = {
    "throttled": {
        "status": 429,
        "amzn": "ThrottlingException",
        "text": "Too many tokens, please wait before trying again.",
    },
    "daily": {
        "status": 429,
        "amzn": "ThrottlingException",
        "text": "Too many tokens per day, please wait before trying again.",
    },
    "quota": {
        "status": 429,
        "google": "RESOURCE_EXHAUSTED",
        "text": "Quota exceeded for aiplatform.googleapis.com/"
        "online_prediction_requests_per_base_model with base model: anthropic-claude-sonnet-4. "
        "Please submit a quota increase request.",
    },
    "service-quota": {
        "status": 400,
        "amzn": "ServiceQuotaExceededException",
        "text": "Your request exceeds the service quota for your account.",
    },
    "no-access": {
        "status": 403,
        "amzn": "AccessDeniedException",
        "text": "You don't have access to the model with the specified model ID.",
    },
    "not-authorized": {
        "status": 403,
        "amzn": "AccessDeniedException",
        "text": "User: arn:aws:iam::123456789012:user/me is not authorized to perform: "
        "bedrock:InvokeModelWithResponseStream on resource: arn:aws:bedrock:x",
    },
    "denied": {
        "status": 403,
        "google": "PERMISSION_DENIED",
        "text": "Permission 'aiplatform.endpoints.predict' denied on resource "
        "'//aiplatform.googleapis.com/projects/p/locations/us-east5/publishers/anthropic/models/m' "
        "(or it may not exist).",
    },
    "expired": {
        "status": 403,
        "amzn": "ExpiredTokenException",
        "text": "The security token included in the request is expired",
    },
    "unrecognized": {
        "status": 403,
        "amzn": "UnrecognizedClientException",
        "text": "The security token included in the request is invalid.",
    },
    "unauthenticated": {
        "status": 401,
        "google": "UNAUTHENTICATED",
        "text": "Request had invalid authentication credentials. Expected OAuth 2 access token, "
        "login cookie or other valid authentication credential.",
    },
    "wrong-key": {
        "status": 401,
        "azure": "401",
        "text": "Access denied due to invalid subscription key or wrong API endpoint. Make sure to "
        "provide a valid key for an active subscription and use a correct regional API endpoint "
        "for your resource.",
    },
    "on-demand": {
        "status": 400,
        "amzn": "ValidationException",
        "text": "Invocation of model ID anthropic.claude-sonnet-4-5-20250929-v1:0 with on-demand "
        "throughput isn’t supported. Retry your request with the ID or ARN of an inference profile "
        "that contains this model.",
    },
    "identifier": {
        "status": 400,
        "amzn": "ValidationException",
        "text": "The provided model identifier is invalid.",
    },
    "publisher-model": {
        "status": 404,
        "google": "NOT_FOUND",
        "text": "Publisher Model `projects/p/locations/us-east5/publishers/anthropic/models/m` was "
        "not found or your project does not have access to it. Please ensure you are using a valid "
        "model version.",
    },
    "not-allowed": {
        "status": 400,
        "google": "FAILED_PRECONDITION",
        "text": "Project `123` is not allowed to use Publisher Model `projects/p/models/m`",
    },
    "no-deployment": {
        "status": 404,
        "azure": "DeploymentNotFound",
        "text": "The API deployment for this resource does not exist. If you created the "
        "deployment within the last 5 minutes, please wait a moment and try again.",
    },
    "model-error": {
        "status": 424,
        "amzn": "ModelErrorException",
        "text": "The request failed due to an error while processing the model.",
    },
    "not-ready": {
        "status": 429,
        "amzn": "ModelNotReadyException",
        "text": "The model specified in the request is not ready to serve inference requests.",
    },
}
"""Faults by name, in the words of the clouds (`status` and body), each in its platform's shape."""


def fault_body(fault: Json) -> tuple[object, dict[str, str]]:
    """The body of a fault and its headers, in the shape of its platform."""
    if "amzn" in fault:
        return {"message": fault["text"]}, {
            "x-amzn-errortype": f"{fault['amzn']}:http://internal.amazon.com/coral/",
            "x-amzn-requestid": "0f1e2d3c-aws",
        }
    if "google" in fault:
        inner = {"code": fault["status"], "message": fault["text"], "status": fault["google"]}
        return [{"error": inner}], {}
    inner = {"code": fault["azure"], "message": fault["text"]}
    return {"error": inner}, {"apim-request-id": "azure-42"}


def message_of_stream(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of Amazon's event stream: two lengths, two checksums, headers of type string."""
    head = b"".join(
        struct.pack(">B", len(name))
        + name.encode()
        + b"\x07"
        + struct.pack(">H", len(value.encode()))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def chunk_of(event: bytes) -> bytes:
    """An event of the Messages API as Bedrock sends it: base64 in JSON, with padding beside it."""
    payload = {"bytes": base64.b64encode(event).decode(), "p": "abcdefgh"}
    names = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return message_of_stream(names, json.dumps(payload).encode())


def exception_of(name: str, text: str) -> bytes:
    """A failure in the midst of a stream."""
    names = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return message_of_stream(names, json.dumps({"message": text}).encode())


def signature_problem(seen: SeenRequest, *, service: str, region: str, secret: str) -> str:
    """Why AWS would not take the signature of a request; "" if it would. Recomputed by botocore."""
    given = seen.headers.get("authorization", "")
    parts = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
        given,
    )
    if parts is None:
        return f"no signature of AWS: {given[:40]!r}"
    key, *scope = parts[1].split("/")
    stamp = seen.headers.get("x-amz-date", "")
    wanted = [stamp[:8], region, service, "aws4_request"]
    if (key, scope) != (ACCESS_KEY, wanted):
        return f"signed for {key}/{'/'.join(scope)}, not for {ACCESS_KEY}/{'/'.join(wanted)}"
    sent = time.mktime(time.strptime(stamp, "%Y%m%dT%H%M%SZ")) - time.timezone
    if abs(sent - time.time()) > _SKEW_S:
        return f"signed at {stamp}"
    signed = parts[2].split(";")
    if "host" not in signed or "x-amz-date" not in signed:
        return f"signs only {signed}"
    query = f"?{seen.query}" if seen.query else ""
    url = f"http://{seen.headers['host']}{seen.path}{query}"
    headers = {name: seen.headers[name] for name in signed}
    request: Any = AWSRequest(method=seen.method, url=url, headers=headers, data=seen.raw)
    request.context["timestamp"] = stamp
    signer: Any = SigV4Auth(Credentials(ACCESS_KEY, secret), service, region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return "" if signer.signature(text, request) == parts[3] else "the signature doesn't match"


@dataclass(slots=True)
class ServiceAccount:
    """A service account of Google's: its key file, and the check of what the key signs."""

    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    )

    def write(self, path: Path, token_uri: str) -> None:
        """Write the key file."""
        pem = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        content = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "k1",
            "private_key": pem.decode(),
            "client_email": ACCOUNT,
            "client_id": "1",
            "token_uri": token_uri,
        }
        path.write_text(json.dumps(content), encoding="utf-8")

    def problem(self, form: bytes) -> str:
        """Why the token endpoint would refuse an assertion; "" if it would take it."""
        fields = parse_qs(form.decode())
        if fields.get("grant_type") != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
            return f"grant_type {fields.get('grant_type')}"
        head, body, signature = fields["assertion"][0].split(".")
        try:
            self.key.public_key().verify(
                _unpadded(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no signature
            return f"the assertion isn't signed by the account: {error!r}"
        claims = json.loads(_unpadded(body))
        # google-auth names this audience whatever the key file's token_uri is.
        wanted = {"iss": ACCOUNT, "aud": "https://oauth2.googleapis.com/token"}
        if {name: claims.get(name) for name in wanted} != wanted:
            return f"claims {claims}"
        if "https://www.googleapis.com/auth/cloud-platform" not in claims.get("scope", ""):
            return f"scope {claims.get('scope')}"
        now = time.time()
        return "" if claims["iat"] <= now + 60 and now < claims["exp"] else "an old assertion"


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class CloudServer(LoopbackServer):
    """One cloud; see the module. `faults` are names of FAULTS, one for each request to come, None
    for none; `exception` breaks into the next stream of Bedrock's after some events."""

    def __init__(
        self,
        kind: Kind,
        script: Json | Script | None = None,
        *,
        port: int = 0,
        region: str = "us-east-1",
        secret: str = SECRET_KEY,
    ) -> None:
        super().__init__(script, port=port)
        self.kind: Final[Kind] = kind
        self.region, self.secret = region, secret
        self.account = ServiceAccount() if kind == "vertex" else None
        self.tokens_given = 0
        self.refused: list[str] = []
        self.faults: list[str | None] = []
        self.exception: tuple[int, str, str] | None = None
        self.damaged = False
        self.entered: list[Json] = []
        """The bodies as they came, before they were put into the form of the Messages API."""

    @property
    def token_uri(self) -> str:
        return f"{self.url}/token"

    @property
    def base_url(self) -> str:
        """What the settings name as the server's address."""
        return self.url + {"bedrock": "", "vertex": "/v1", "foundry": "/anthropic"}[self.kind]

    def answer(self, connection: Connection, seen: SeenRequest, number: int) -> Answer:
        return _CloudAnswer(self, connection, seen, number)

    def credentials_problem(self, seen: SeenRequest) -> str:
        """Why the cloud would not let a request in; "" if it would."""
        bearer = seen.headers.get("authorization", "").removeprefix("Bearer ")
        match self.kind:
            case "bedrock":
                if seen.headers.get("authorization", "").startswith("Bearer "):
                    return "" if bearer == BEARER else f"token {bearer}"
                messages = seen.path.startswith("/anthropic/")
                service = "bedrock-mantle" if messages else "bedrock"
                return signature_problem(
                    seen, service=service, region=self.region, secret=self.secret
                )
            case "vertex":
                return "" if bearer == GOOGLE_TOKEN else f"token {bearer!r}"
            case _:
                keys = {seen.headers.get("api-key"), seen.headers.get("x-api-key")}
                if bearer:
                    return "" if bearer == ENTRA_TOKEN else f"token {bearer!r}"
                return "" if keys == {FOUNDRY_KEY} else f"keys {keys}"

    def translated(self, seen: SeenRequest) -> tuple[SeenRequest, bool] | Rejection:
        """A request in the form of the Messages API, and if it wants Amazon's event stream."""
        body: Json = json.loads(seen.raw or b"{}")
        headers = {n: v for n, v in seen.headers.items() if n != "authorization"}
        headers |= {
            "x-api-key": "checked",
            "anthropic-version": seen.headers.get("anthropic-version", ""),
        }
        path, stream = seen.path, False
        if self.kind == "foundry" or (self.kind == "bedrock" and path.startswith("/anthropic/")):
            path = path.removeprefix("/anthropic")
            if not seen.headers.get("anthropic-version"):
                return Rejection(400, "invalid_request_error", "anthropic-version is required")
            if self.kind == "bedrock":
                body["model"] = _bedrock_model(body["model"])
        elif self.kind == "bedrock":
            found = re.fullmatch(r"/model/([^/]+)/invoke-with-response-stream", path)
            if found is None or "model" in body or "stream" in body:
                return Rejection(400, "ValidationException", f"Malformed request: {path} {[*body]}")
            version = body.pop("anthropic_version", None)
            if version != "bedrock-2023-05-31":
                return Rejection(400, "ValidationException", f"anthropic_version: {version}")
            headers["anthropic-beta"] = ",".join(body.pop("anthropic_beta", []))
            headers["anthropic-version"] = "2023-06-01"
            body |= {"model": _bedrock_model(unquote(found[1])), "stream": True}
            path, stream = "/v1/messages", True
        else:
            place = f"/v1/projects/{PROJECT}/locations/{self.region}/publishers/anthropic/models/"
            named = unquote(path).removeprefix(place)
            model, _, verb = named.partition(":")
            if not unquote(path).startswith(place) or "anthropic_version" not in body:
                return Rejection(404, "NOT_FOUND", f"Not found: {path}")
            headers["anthropic-version"] = body.pop("anthropic_version")
            if model == "count-tokens":
                body["model"] = body["model"].partition("@")[0]
                path = "/v1/messages/count_tokens"
            elif "model" in body or (verb == "streamRawPredict") != bool(body.get("stream")):
                return Rejection(400, "INVALID_ARGUMENT", f"model in the body, or {verb}")
            else:
                body["model"] = model.partition("@")[0]
                path = "/v1/messages"
        raw = json.dumps(body).encode()
        made = SeenRequest(seen.method, path, headers, raw, seen.connection, seen.query, seen.gone)
        return made, stream


def _bedrock_model(name: str) -> str:
    """The model behind one of Bedrock's ids, as the strict server knows it."""
    name = name.rpartition("/")[2]
    found = re.fullmatch(
        r"(?:[a-z-]+\.)?anthropic\.(claude-[a-z0-9-]+?)(?:-\d{8})?(?:-v\d(?::\d)?)?", name
    )
    return found[1] if found else name


class _CloudAnswer(Answer):
    """The answer to one request, in the format of its cloud."""

    _amazon = False

    async def give(self) -> None:
        server, seen = self._cloud, self.seen
        if server.kind == "vertex" and seen.path == "/token":
            assert server.account is not None
            if problem := server.account.problem(seen.raw):
                server.refused.append(problem)
                await self._json(400, {"error": "invalid_grant", "error_description": problem})
                return
            server.tokens_given += 1
            token = {"access_token": GOOGLE_TOKEN, "expires_in": 3600, "token_type": "Bearer"}
            await self._json(200, token)
            return
        if problem := server.credentials_problem(seen):
            server.refused.append(problem)
            name = {"bedrock": "unrecognized", "vertex": "unauthenticated", "foundry": "wrong-key"}
            await self._cloud_fault(FAULTS[name[server.kind]])
            return
        server.entered.append(json.loads(seen.raw or b"{}"))
        if server.faults and (fault := server.faults.pop(0)) is not None:
            await self._cloud_fault(FAULTS[fault])
            return
        made = server.translated(seen)
        if isinstance(made, Rejection):
            server.refused.append(made.message)
            await self._error(made)
            return
        self.seen, self._amazon = made
        await super().give()

    @property
    def _cloud(self) -> CloudServer:
        return cast("CloudServer", self.server)

    async def _cloud_fault(self, fault: Json) -> None:
        body, headers = fault_body(fault)
        await self._json(fault["status"], body, headers)

    async def _json(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        if self._amazon and status != 200 and "message" in (error := _inner(body)):
            types = {"x-amzn-errortype": _AMAZON_NAMES.get(status, "ValidationException")}
            body, headers = {"message": error["message"]}, (headers or {}) | types
        await super()._json(status, body, headers)

    async def _head(self, status: int, kind: str, extra: Iterable[tuple[str, str]] = ()) -> None:
        if self._amazon:
            if status == 200:
                kind = "application/vnd.amazon.eventstream"
            number = f"aws-{self.number:04}"
            head = [("content-type", kind), ("x-amzn-requestid", number), *extra]
            await self.connection.send(h11.Response(status_code=status, headers=head))
            return
        await super()._head(status, kind, extra)

    async def _write(self, data: bytes) -> None:
        if not self._amazon:
            await super()._write(data)
            return
        for line in data.split(b"\n"):
            if line.startswith(b"data: "):
                await self._amazon_event(line[6:])

    async def _amazon_event(self, event: bytes) -> None:
        server = self._cloud
        if server.exception is not None:
            left, name, text = server.exception
            if left == 0:
                server.exception = None
                await super()._write(exception_of(name, text))
                return
            server.exception = (left - 1, name, text)
        message = bytearray(chunk_of(event))
        if server.damaged and b"delta" in event:
            server.damaged = False
            message[20] ^= 0xFF
        # In two pieces, as a network may split them.
        await super()._write(bytes(message[:7]))
        await super()._write(bytes(message[7:]))


_AMAZON_NAMES = {400: "ValidationException", 429: "ThrottlingException", 529: "ThrottlingException"}


def _inner(body: object) -> Json:
    error: object = cast("Json", body).get("error") if isinstance(body, dict) else None
    return cast("Json", error) if isinstance(error, dict) else {}


async def _main(kind: Kind, port: int, region: str, key_file: Path | None) -> None:
    from tests.desk.real.model import PromptedScript  # noqa: PLC0415 - for a person only

    server = CloudServer(kind, PromptedScript(), port=port, region=region)
    async with server:
        if key_file is not None and server.account is not None:
            server.account.write(key_file, server.token_uri)
        print(server.base_url, flush=True)
        loop = asyncio.get_running_loop()
        while name := (await loop.run_in_executor(None, input)).strip():
            # `NAME` plays a fault in the next request; `stream NAME` in the midst of its answer
            if name.startswith("stream "):
                server.exception = (4, name.removeprefix("stream "), "Played.")
            else:
                server.faults.append(name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["bedrock", "vertex", "foundry"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--key-file", type=Path)
    given = parser.parse_args()
    asyncio.run(_main(given.kind, given.port, given.region, given.key_file))
