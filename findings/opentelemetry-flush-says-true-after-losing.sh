#!/usr/bin/env bash
# opentelemetry-sdk 1.45.2 with its OTLP exporter over HTTP (PyPI, 2026-11-29): a batch processor's
# force_flush(timeout_millis=…) keeps to no timeout, and says True for spans that were lost.
#
# Best guesses, as a program that ends would rely on them:
#   1. The collector takes the spans: True.
#   2. It refuses them (400, which is not tried again): False, since nothing was delivered.
#   3. It is busy (503 with Retry-After: 2), timeout_millis=500: back after half a second, False.
#   4. Nobody listens there: False.
#
# Seen: 1 holds. 2 is True at once. 3 and 4 are True as well, with nothing delivered, 3 after as long
# as the exporter's own tries take, 4 s or so.
#
# Who is hurt: a program that flushes before it ends, to say whether its spans arrived, or to leave
# within a limit. The exporter's own `timeout`, and a look at what it returned, are what there is.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check opentelemetry-sdk==1.45.2 \
  opentelemetry-exporter-otlp-proto-http==1.45.2
cat > flush.py <<'PY'
import http.server
import logging
import socket
import threading
import time

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

logging.disable(logging.CRITICAL)
CODES = {"/takes": 200, "/refuses": 400, "/busy": 503}
delivered = []


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        code = CODES[self.path]
        if code == 200:
            delivered.append(self.path)
        self.send_response(code)
        if code == 503:
            self.send_header("Retry-After", "2")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    nobody = free.getsockname()[1]
here = f"http://127.0.0.1:{server.server_port}"
for url in (f"{here}/takes", f"{here}/refuses", f"{here}/busy", f"http://127.0.0.1:{nobody}/"):
    delivered.clear()
    processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=url, timeout=5))
    provider = TracerProvider()
    provider.add_span_processor(processor)
    provider.get_tracer("work").start_span("step").end()
    before = time.monotonic()
    said = processor.force_flush(timeout_millis=500)
    late = ", late" if url.endswith("busy") and time.monotonic() - before > 1.5 else ""
    print(f"{url.rpartition('/')[2] or 'nobody'}: {said}, {len(delivered)} delivered{late}")
    provider.shutdown()
PY
seen=$(env/bin/python flush.py)
echo "$seen"
wanted='takes: True, 1 delivered
refuses: True, 0 delivered
busy: True, 0 delivered, late
nobody: True, 0 delivered'
[ "$seen" = "$wanted" ] || { echo "force_flush has changed"; exit 1; }
