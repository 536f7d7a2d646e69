"""Composio, Arcade and Pipedream as far as their clients know them: routes, headers and shapes of their APIs."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

KEY = "key-that-nobody-may-see"


class Hosted:
    """What they have in common: what was asked, and who may ask."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.connected: set[str] = {"ada"}
        self.app = Starlette(
            routes=[Route(path, self._guarded(answer), methods=["GET", "POST"]) for path, answer in self.routes()]
        )

    def routes(self) -> list[tuple[str, Any]]:
        raise NotImplementedError

    def allows(self, request: Request) -> bool:
        raise NotImplementedError

    def bodies(self, path: str) -> list[Any]:
        return [body for _, asked, body in self.asked if asked.startswith(path)]

    def _guarded(self, answer: Any) -> Any:
        async def endpoint(request: Request) -> JSONResponse:
            body = await request.json() if request.method == "POST" else dict(request.query_params)
            self.asked.append((request.method, request.url.path, body))
            if not self.allows(request):
                return JSONResponse({"error": {"message": f"bad key {request.headers.get('x-api-key', '')}"}}, 401)
            status, told = answer(request, body)
            headers = {"retry-after": "7"} if status == 429 else None
            return JSONResponse(told, status, headers)

        return endpoint


def tool(slug: str, version: str = "20260101_00", **more: Any) -> dict[str, Any]:
    return {
        "slug": slug,
        "name": slug.title(),
        "description": f"Does {slug}.",
        "input_parameters": {"type": "object", "properties": {"repo": {"type": "string"}}, "required": ["repo"]},
        "output_parameters": {"type": "object"},
        "toolkit": {"slug": slug.partition("_")[0].lower(), "name": "GitHub", "logo": ""},
        "version": version,
        "available_versions": ["20250101_00", version],
        "tags": ["readOnlyHint", "important"],
        "scopes": [],
        "no_auth": False,
        "is_deprecated": False,
        **more,
    }


class Composio(Hosted):
    def __init__(self) -> None:
        super().__init__()
        self.tools = [tool("GITHUB_STAR"), tool("GITHUB_LIST"), tool("GITHUB_DELETE", tags=["destructiveHint"])]
        self.configs = [
            {"id": "ac_old", "status": "ENABLED", "created_at": "2025-01-01T00:00:00Z"},
            {"id": "ac_new", "status": "ENABLED", "created_at": "2026-01-01T00:00:00Z"},
            {"id": "ac_off", "status": "DISABLED", "created_at": "2026-02-01T00:00:00Z"},
        ]
        self.outcome: Any = {"data": {"starred": True}, "error": None, "successful": True}
        self.status = 200

    def routes(self) -> list[tuple[str, Any]]:
        return [
            ("/api/v3.1/tools", self._tools),
            ("/api/v3.1/tools/execute/{slug}", self._execute),
            ("/api/v3.1/tools/{slug}", self._tool),
            ("/api/v3.1/auth_configs", lambda *_: (200, {"items": self.configs, "next_cursor": None})),
            ("/api/v3.1/connected_accounts/link", self._link),
        ]

    def allows(self, request: Request) -> bool:
        return request.headers.get("x-api-key") == KEY

    def _tools(self, request: Request, query: Any) -> tuple[int, Any]:
        found = [one for one in self.tools if one["toolkit"]["slug"] == query.get("toolkit_slug")]
        if "tool_slugs" in query:
            found = [one for one in self.tools if one["slug"] in query["tool_slugs"].split(",")]
        start = int(query.get("cursor", 0))
        more = start + 2 < len(found)
        return 200, {"items": found[start : start + 2], "next_cursor": str(start + 2) if more else None}

    def _tool(self, request: Request, query: Any) -> tuple[int, Any]:
        found = [one for one in self.tools if one["slug"] == request.path_params["slug"]]
        return (200, found[0]) if found else (404, {"error": {"message": "Tool not found", "slug": "Tool_NotFound"}})

    def _execute(self, request: Request, body: Any) -> tuple[int, Any]:
        if body["user_id"] in self.connected:
            return self.status, self.outcome
        message = f"No connected account found for user ID {body['user_id']} for toolkit github"
        slug = "ActionExecute_ConnectedAccountNotFound"
        return 400, {"error": {"message": message, "code": 1810, "slug": slug, "status": 400}}

    def _link(self, request: Request, body: Any) -> tuple[int, Any]:
        url = f"https://connect.composio.example/link/{body['auth_config_id']}/{body['user_id']}"
        return 201, {"redirect_url": url, "link_token": "lt", "connected_account_id": "ca", "expires_at": ""}


class Arcade(Hosted):
    def __init__(self) -> None:
        super().__init__()
        parameters = [
            {"name": "repo", "required": True, "description": "Which one.", "value_schema": {"val_type": "string"}},
            {"name": "labels", "required": False, "value_schema": {"val_type": "array", "inner_val_type": "string"}},
        ]
        self.tools = [
            {
                "name": name,
                "qualified_name": f"Github.{name}",
                "fully_qualified_name": f"Github.{name}@1.2.0",
                "description": f"Does {name}.",
                "toolkit": {"name": "Github", "version": "1.2.0"},
                "input": {"parameters": parameters},
                "output": {"available_modes": ["value", "error"]},
                "requirements": {"authorization": {"provider_id": "github", "provider_type": "oauth2"}},
            }
            for name in ["Star", *(f"Tool{number}" for number in range(140))]
        ]
        self.output: Any = {"value": {"starred": True}}
        self.success = True
        self.refuses_by_status = False

    def routes(self) -> list[tuple[str, Any]]:
        return [
            ("/v1/tools", self._tools),
            ("/v1/tools/execute", self._execute),
            ("/v1/tools/authorize", self._authorize),
            ("/v1/tools/{name}", self._tool),
        ]

    def allows(self, request: Request) -> bool:
        return request.headers.get("authorization") == KEY

    def _tools(self, request: Request, query: Any) -> tuple[int, Any]:
        start, limit = int(query["offset"]), int(query["limit"])
        found = [one for one in self.tools if one["toolkit"]["name"] == query.get("toolkit", "Github")]
        page = found[start : start + limit]
        return 200, {"items": page, "total_count": len(found), "offset": start, "limit": limit}

    def _tool(self, request: Request, query: Any) -> tuple[int, Any]:
        found = [one for one in self.tools if one["qualified_name"] == request.path_params["name"]]
        return (200, found[0]) if found else (404, {"name": "not_found", "message": "tool not found"})

    def _execute(self, request: Request, body: Any) -> tuple[int, Any]:
        if body["user_id"] in self.connected:
            return 200, {"id": "te_1", "success": self.success, "status": "x", "output": self.output}
        if self.refuses_by_status:
            return 403, {"name": "permission_denied", "message": "authorization required"}
        return 200, {"success": False, "output": {"authorization": self._authorize(request, body)[1]}}

    def _authorize(self, request: Request, body: Any) -> tuple[int, Any]:
        if body["user_id"] in self.connected:
            return 200, {"status": "completed"}
        return 200, {"id": "au", "status": "pending", "url": f"https://arcade.example/consent/{body['user_id']}"}


class Pipedream(Hosted):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = 0
        self.taken_back: set[str] = set()
        self.actions = [
            {
                "key": "slack-send",
                "name": "Send",
                "version": "0.3.1",
                "description": "Sends a message.",
                "component_type": "action",
                "annotations": {"readOnlyHint": False, "destructiveHint": False},
                "configurable_props": [
                    {"name": "slack", "type": "app", "app": "slack"},
                    {"name": "hint", "type": "alert", "content": "Mind the gap"},
                    {"name": "text", "type": "string", "label": "Text"},
                    {"name": "times", "type": "integer", "default": 1},
                ],
            },
            {
                "key": "sheets-add",
                "name": "Add",
                "version": "1.0.0",
                "configurable_props": [
                    {"name": "google", "type": "app", "app": "google_sheets"},
                    {"name": "sheet", "type": "string", "reloadProps": True, "remoteOptions": True},
                ],
            },
            {"key": "plain-now", "name": "Now", "version": "0.0.1", "configurable_props": []},
        ]
        self.accounts = [
            {"id": "apn_old", "created_at": "2025-01-01T00:00:00Z", "healthy": True, "dead": False},
            {"id": "apn_new", "created_at": "2026-01-01T00:00:00Z", "healthy": True, "dead": None},
            {"id": "apn_dead", "created_at": "2026-02-01T00:00:00Z", "healthy": False, "dead": True},
        ]
        self.outcome: Any = {"exports": {"$summary": "sent"}, "os": [], "ret": {"ok": True}}
        self.status = 200

    def routes(self) -> list[tuple[str, Any]]:
        project = "/v1/connect/proj_1"
        return [
            ("/v1/oauth/token", self._token),
            (f"{project}/actions", self._actions),
            (f"{project}/actions/run", lambda *_: (self.status, self.outcome)),
            (f"{project}/actions/props", self._props),
            (f"{project}/actions/{{key}}", self._action),
            (f"{project}/accounts", self._accounts),
            (f"{project}/tokens", self._link),
        ]

    def allows(self, request: Request) -> bool:
        if request.url.path == "/v1/oauth/token":
            return True
        token = request.headers.get("authorization", "")
        return (
            token == f"Bearer token-number-{self.tokens}"
            and token not in self.taken_back
            and bool(request.headers["x-pd-environment"])
        )

    def _token(self, request: Request, body: Any) -> tuple[int, Any]:
        if body != {"grant_type": "client_credentials", "client_id": "id", "client_secret": KEY}:
            return 401, {"error": f"invalid_client {body['client_secret']}"}
        self.tokens += 1
        return 200, {"access_token": f"token-number-{self.tokens}", "token_type": "Bearer", "expires_in": 3600}

    def _actions(self, request: Request, query: Any) -> tuple[int, Any]:
        found = [
            one
            for one in self.actions
            if one["key"].startswith(query.get("app", "")) and query.get("q", "") in one["key"]
        ]
        start = int(query.get("after", 0))
        more = start + 1 < len(found)
        page = {"count": 1, "total_count": len(found), "end_cursor": str(start + 1) if more else None}
        return 200, {"data": found[start : start + 1], "page_info": page}

    def _action(self, request: Request, query: Any) -> tuple[int, Any]:
        found = [one for one in self.actions if one["key"] == request.path_params["key"]]
        return (200, {"data": found[0]}) if found else (404, {"error": "record not found"})

    def _props(self, request: Request, body: Any) -> tuple[int, Any]:
        if body["configured_props"].get("sheet") == "gone":
            return 200, {"errors": ["no such sheet"], "dynamicProps": None}
        columns = [
            {"name": "colA", "type": "string", "label": "Column A"},
            {"name": "colB", "type": "string", "optional": True},
        ]
        return 200, {"errors": [], "dynamicProps": {"id": "dyp_1", "configurableProps": columns}}

    def _accounts(self, request: Request, query: Any) -> tuple[int, Any]:
        return 200, {"data": self.accounts if query["external_user_id"] in self.connected else [], "page_info": {}}

    def _link(self, request: Request, body: Any) -> tuple[int, Any]:
        url = f"https://pipedream.example/_static/connect.html?token=ctok_{body['external_user_id']}&connectLink=true"
        return 200, {"connect_link_url": url, "token": "ctok", "expires_at": "2026-12-01T00:00:00Z"}
