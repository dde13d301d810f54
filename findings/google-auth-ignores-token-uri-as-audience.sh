#!/usr/bin/env bash
# google-auth 2.63.0 (PyPI, 2026-11-30): a service account's key file names a `token_uri`, to which
# the signed assertion is sent; the assertion itself is always made out to another address.
#
# Best guesses, from RFC 7523 (section 3: the audience identifies the authorization server, and its
# token endpoint's address may be used) and the key file's own field:
#   1. The request goes to `token_uri`.
#   2. The assertion's `aud` is `token_uri`, too.
#
# Seen: 1 holds. In 2, `aud` is https://oauth2.googleapis.com/token, whatever the file says.
#
# Who is hurt: whoever stands in for Google's endpoint (a proxy, an emulator, a test server) and
# checks the audience as the RFC wants: it refuses each assertion as made out to somebody else.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check 'google-auth[requests]==2.63.0'
cat > ask.py <<'PY'
import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.transport.requests import Request
from google.oauth2 import service_account

seen = []


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        claims = form["assertion"][0].split(".")[1]
        seen.append(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))))
        body = b'{"access_token": "t", "expires_in": 3600, "token_type": "Bearer"}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
uri = f"http://127.0.0.1:{server.server_port}/token"
pem = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.PKCS8,
    serialization.NoEncryption(),
)
info = {
    "type": "service_account",
    "client_email": "a@p.iam.gserviceaccount.com",
    "private_key": pem.decode(),
    "private_key_id": "k",
    "token_uri": uri,
}
credentials = service_account.Credentials.from_service_account_info(info, scopes=["s"])
credentials.refresh(Request())
assert len(seen) == 1, "the request didn't go to token_uri"
print(f"token_uri: {uri}")
print(f"aud:       {seen[0]['aud']}")
assert seen[0]["aud"] == "https://oauth2.googleapis.com/token" != uri
PY
env/bin/python ask.py
echo "seen: the assertion is made out to Google's address, not to token_uri"
