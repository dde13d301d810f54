"""A loopback server that plays a model: it answers by a script, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = dict[str, Any]


def blocks_of(turn: Turn) -> list[dict[str, Any]]:
    """Return the content of a scripted answer."""
    blocks: list[dict[str, Any]] = []
    if "thinking" in turn:
        blocks.append({"type": "thinking", "thinking": turn["thinking"], "signature": "c2ln"})
    if "text" in turn:
        blocks.append({"type": "text", "text": turn["text"]})
    for number, call in enumerate(turn.get("tools", ())):
        id_ = call.get("id", f"toolu_{number:02}")
        blocks.append({"type": "tool_use", "id": id_, "name": call["name"], "input": call["input"]})
    return blocks


def events_of(turn: Turn, model: str, number: int) -> list[dict[str, Any]]:
    """Return a scripted answer as the events of the Messages API's stream."""
    usage = {"input_tokens": 100, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": f"msg_{number:04}",
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            },
        }
    ]
    for index, block in enumerate(blocks_of(turn)):
        match block["type"]:
            case "thinking":
                begun = block | {"thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case "text":
                begun, half = block | {"text": ""}, len(block["text"]) // 2
                deltas = [
                    {"type": "text_delta", "text": block["text"][:half]},
                    {"type": "text_delta", "text": block["text"][half:]},
                ]
            case _:
                begun = {**block, "input": dict[str, Any]()}
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if turn.get("tools") else "end_turn"
    usage = {"input_tokens": 100, "output_tokens": 20}
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": usage,
        }
    )
    events.append({"type": "message_stop"})
    return events


class ModelServer:
    """Plays `turns`, one for each request that offers tools; any other gets a short text."""

    def __init__(self, turns: list[Turn]) -> None:
        self.turns = list(turns)
        self.requests: list[dict[str, Any]] = []
        self.stalled = threading.Event()
        self.ended = threading.Event()
        self._number = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base has it
                pass

            def do_HEAD(self) -> None:
                self._json(200, {})

            def do_GET(self) -> None:
                self._json(404, {"type": "error", "error": {"type": "not_found_error"}})

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                server.requests.append({"path": self.path, "body": body})
                if "/v1/messages" not in self.path:
                    self._json(404, {"type": "error", "error": {"type": "not_found_error"}})
                elif "count_tokens" in self.path:
                    self._json(200, {"input_tokens": 100})
                else:
                    server.answer(self, body)

            def _json(self, status: int, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that goes away is no error."""

        self._http = Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        self.ended.set()
        self._http.shutdown()
        self._http.server_close()

    def answer(self, handler: Any, body: dict[str, Any]) -> None:
        main = bool(body.get("tools"))
        turn = self.turns.pop(0) if main and self.turns else {"text": "(end of the script)"}
        if not main:
            turn = {"text": '{"title": "A title"}'}
        self._number += 1
        model = str(body.get("model"))
        if "status" in turn:
            error = {"type": "error", "error": {"type": turn["error"], "message": turn["message"]}}
            handler._json(turn["status"], error)
            return
        events = events_of(turn, model, self._number)
        if not body.get("stream"):
            message = events[0]["message"] | {"content": blocks_of(turn), "stop_reason": "end_turn"}
            handler._json(200, message)
            return
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        for event in events:
            if turn.get("stall") and event["type"] == "content_block_stop":
                self.stalled.set()
                self.ended.wait(30)
                return
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            handler.wfile.write(data.encode())
            handler.wfile.flush()
        handler.close_connection = True
