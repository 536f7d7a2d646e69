"""An HTTP API becomes tools: its OpenAPI document says how to call it, and the key stays with the developer.

The API is a small one on this machine, so that the example runs anywhere.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

from toolcrib import OpenAPI, ToolCall, Toolset, call_tools

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pet shop", "version": "1"},
    "components": {"securitySchemes": {"shop_key": {"type": "apiKey", "in": "header", "name": "X-Shop-Key"}}},
    "paths": {
        "/pets": {
            "get": {
                "operationId": "listPets",
                "summary": "List the pets that are for sale.",
                "parameters": [
                    {"name": "kind", "in": "query", "schema": {"type": "array", "items": {"enum": ["cat", "dog"]}}}
                ],
            },
        },
        "/pets/{name}": {
            "put": {
                "operationId": "sellPet",
                "summary": "Sell a pet.",
                "security": [{"shop_key": []}],
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {
                                    "sale": {"type": "integer", "readOnly": True},
                                    "buyer": {"type": "string", "description": "Who buys it."},
                                },
                                "required": ["sale", "buyer"],
                            }
                        }
                    },
                },
            },
        },
    },
}
PETS = {"Tom": "cat", "Rex": "dog", "Kit": "cat"}


class Shop(BaseHTTPRequestHandler):
    """The API."""

    def do_GET(self):
        """Answer with the document, or with the names of pets."""
        address = urlsplit(self.path)
        if address.path == "/openapi.json":
            self.answer(200, DOCUMENT)
        else:
            kinds = parse_qs(address.query).get("kind", ["cat", "dog"])
            self.answer(200, [name for name, kind in PETS.items() if kind in kinds])

    def do_PUT(self):
        """Sell a pet to somebody with the key."""
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = unquote(self.path.rpartition("/")[2])
        if self.headers["X-Shop-Key"] != "a-long-random-key":
            self.answer(401, {"error": "who are you?"})
        elif name not in PETS:
            self.answer(404, {"error": f"there is no {name}"})
        else:
            self.answer(200, f"{order['buyer']} has bought {name}")

    def answer(self, status: int, data: object) -> None:
        """Send data as JSON."""
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        """Stay silent."""


@contextmanager
def open_shop() -> Iterator[str]:
    """Serve the API while the block runs, and give its address."""
    server = HTTPServer(("127.0.0.1", 0), Shop)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    with open_shop() as url:
        tools = Toolset([OpenAPI(f"{url}/openapi.json", auth={"shop_key": "a-long-random-key"})])
        for tool in tools:
            print(tool.name, tool.effect, json.dumps(tool.input_schema["properties"]))
        calls = [
            ToolCall("1", "listPets", '{"kind": ["cat"]}'),
            ToolCall("2", "sellPet", '{"name": "Rex", "buyer": "Ada"}'),
            ToolCall("3", "sellPet", '{"name": "Max", "buyer": "Ada"}'),
            ToolCall("4", "sellPet", '{"name": "../admin", "buyer": "Ada"}'),
        ]
        for result in call_tools(calls, tools):
            print(f"{result.kind}: {result.text}")


if __name__ == "__main__":
    main()
