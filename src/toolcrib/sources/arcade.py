"""The tools of Arcade, over its REST interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib._secrets import Secret
from toolcrib.errors import ExternalToolError
from toolcrib.sources._hosted import HostedTools, UserId, consent, listed, members, names, paged, revealed, text_of
from toolcrib.sources._rest import Rest, segment

__all__ = ["ArcadeClient"]

_PAGE = 100
_UNAUTHORIZED = frozenset({400, 403})
_NEEDS_CONSENT = frozenset({"TOOL_REQUIREMENTS_NOT_MET", "UPSTREAM_RUNTIME_AUTH_ERROR"})


class ArcadeClient(HostedTools):
    """The tools of an Arcade project; put it in an ExternalToolProvider.

    A call runs the version of the tool that was listed. Where the user has not allowed it yet, it fails with an
    AuthorizationNeededError that has the link.

    Args:
        api_key: The project's key.
        user_id: Whose accounts calls use, or a function of a call's ToolContext that says so.
        toolkits: Toolkits whose tools to list, by name, as in `Github`; by default all of the project's.
        version: The version of each tool to run, in place of the one that was listed.
        base_url: Where Arcade is.
        timeout: Seconds one request may take in all; None for no end.
        allow_insecure: Whether the key may be sent over plain http to another machine.

    Raises:
        ValueError: An address, a key or a timeout that is none.
        MissingExtraError: The `http` extra is not installed.
    """

    def __init__(
        self,
        api_key: str | Secret,
        *,
        user_id: UserId,
        toolkits: str | Iterable[str] | None = None,
        version: str | None = None,
        base_url: str = "https://api.arcade.dev",
        timeout: float | None = 60.0,
        allow_insecure: bool = False,
    ) -> None:
        rest = Rest(
            base_url,
            title="Arcade",
            wanted_by="ArcadeClient",
            api_key=("authorization", revealed(api_key, "api_key")),
            timeout=timeout,
            allow_insecure=allow_insecure,
        )
        super().__init__(rest, user_id)
        self._toolkits = None if toolkits is None else names(toolkits)
        self._version = version

    async def _list(self) -> list[Mapping[str, Any]]:
        wanted = (None,) if self._toolkits is None else self._toolkits
        found = {_name(tool): tool for toolkit in wanted for tool in await self._pages(toolkit)}
        self._known.update(found)
        return [_spec(tool) for tool in found.values()]

    async def _pages(self, toolkit: str | None) -> list[Mapping[str, Any]]:
        async def page(offset: Any) -> tuple[Any, Any]:
            asked = {"toolkit": toolkit, "limit": _PAGE, "offset": offset or 0}
            answer = members(await self._rest.ask("GET", "/v1/tools", query=asked))
            total, end = answer.get("total_count"), (offset or 0) + len(listed(answer.get("items")))
            return answer.get("items"), end if isinstance(total, int) and end < total else None

        return await paged(page, "Arcade")

    async def _call(self, name: str, arguments: dict[str, Any], user: str) -> Any:
        tool = await self._tool(name)
        version = self._version or members(tool, "toolkit").get("version")
        asked = {"tool_name": name, "user_id": user, "tool_version": version}
        try:
            answer = await self._rest.ask("POST", "/v1/tools/execute", body={**asked, "input": arguments})
        except ExternalToolError as error:
            if error.status in _UNAUTHORIZED and _wants_consent(tool):
                raise await self._unauthorized(asked, error) from error
            raise
        output = members(answer, "output")
        failed, authorization = members(output, "error"), members(output, "authorization")
        if members(answer).get("success") is True and not failed:
            return output.get("value")
        error = self._rest.failure(f"could not run {name}: {_reason(failed)}", body=answer, **_hints(failed))
        if authorization.get("url") and authorization.get("status") != "completed":
            raise consent(_access(tool, name), authorization["url"], user, error)
        if failed.get("kind") in _NEEDS_CONSENT and _wants_consent(tool):
            raise await self._unauthorized(asked, error)
        raise error

    async def _tool(self, name: str) -> Mapping[str, Any]:
        if name not in self._known:
            self._known[name] = members(await self._rest.ask("GET", f"/v1/tools/{segment(name, 'Arcade')}"))
        return self._known[name]

    async def _unauthorized(self, asked: Mapping[str, Any], error: ExternalToolError) -> ExternalToolError:
        answer = members(await self._rest.ask("POST", "/v1/tools/authorize", body=asked))
        if answer.get("status") == "completed":
            return error
        name = asked["tool_name"]
        return consent(_access(self._known[name], name), answer.get("url"), asked["user_id"], error)


def _name(tool: Mapping[str, Any]) -> str:
    return text_of(tool.get("qualified_name")) or text_of(tool.get("name"))


def _wants_consent(tool: Mapping[str, Any]) -> bool:
    return bool(members(tool, "requirements", "authorization"))


def _access(tool: Mapping[str, Any], name: str) -> str:
    return text_of(members(tool, "requirements", "authorization").get("provider_id")) or name


def _reason(failed: Mapping[str, Any]) -> str:
    told = [text_of(failed.get(key)).strip() for key in ("message", "additional_prompt_content")]
    wait = _hints(failed)["retry_after"]
    told.append(f"it may be called again in {wait:g} seconds" if wait else "")
    return "; ".join(filter(None, told)) or "it does not say why"


def _hints(failed: Mapping[str, Any]) -> dict[str, Any]:
    again, wait = failed.get("can_retry"), failed.get("retry_after_ms")
    return {
        "retryable": again if isinstance(again, bool) else None,
        "retry_after": wait / 1000 if isinstance(wait, int | float) and wait > 0 else None,
    }


# -- definitions


def _spec(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = [one for one in listed(members(tool, "input").get("parameters")) if text_of(one.get("name"))]
    return {
        "name": _name(tool),
        "description": tool.get("description"),
        "parameters": {
            "type": "object",
            "properties": {one["name"]: _described(one) for one in parameters},
            "required": [one["name"] for one in parameters if one.get("required") is True],
        },
    }


def _described(parameter: Mapping[str, Any]) -> dict[str, Any]:
    schema = _value_schema(members(parameter, "value_schema"))
    words = text_of(parameter.get("description")).strip()
    return {**schema, "description": words} if words else schema


def _value_schema(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of one of Arcade's value schemas; a type nobody knows takes anything."""
    kind = text_of(value.get("val_type"))
    if kind != "array":
        return _single(kind, value)
    inner = _single(text_of(value.get("inner_val_type")), value)
    return {"type": "array", "items": inner} if inner else {"type": "array"}


def _single(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    choices = value.get("enum") if kind == "string" else None
    return {**_TYPES.get(kind, {}), "enum": choices} if choices else dict(_TYPES.get(kind, {}))


_TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "json": {"type": "object"},
    "object": {"type": "object"},
}
