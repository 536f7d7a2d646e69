"""The tools of Composio, over its REST interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib._secrets import Secret
from toolcrib.errors import ExternalToolError
from toolcrib.sources._hosted import HostedTools, UserId, consent, listed, members, names, paged, revealed, text_of
from toolcrib.sources._rest import Rest, segment

__all__ = ["ComposioClient"]

_PAGE = 200
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint")
_NOT_CONNECTED = re.compile(
    r"ConnectedAccountNotFound|NoActiveConnection|no (?:active )?connect(?:ed account|ion)", re.IGNORECASE
)


class ComposioClient(HostedTools):
    """The tools of some of Composio's toolkits; put it in an ExternalToolProvider.

    A call runs the version of the tool that was listed, so that what a model was shown is what runs. Where the
    user has not connected an account yet, the call fails with an AuthorizationNeededError that has the link.

    Args:
        api_key: The project's key.
        user_id: Whose accounts calls use, or a function of a call's ToolContext that says so.
        toolkits: Toolkits whose tools to list, by slug, as in `github`.
        tools: Tools to list, by slug, in place of whole toolkits.
        version: The version to list and run: of everything, or by toolkit; None for the latest.
        auth_configs: The auth config that a toolkit's accounts are connected with, by toolkit; None for the
            newest one there is.
        base_url: Where Composio is.
        timeout: Seconds one request may take in all; None for no end.
        allow_insecure: Whether the key may be sent over plain http to another machine.

    Raises:
        ValueError: An address, a key or a timeout that is none, or neither toolkits nor tools.
        MissingExtraError: The `http` extra is not installed.
    """

    def __init__(
        self,
        api_key: str | Secret,
        *,
        user_id: UserId,
        toolkits: str | Iterable[str] = (),
        tools: str | Iterable[str] = (),
        version: str | Mapping[str, str] | None = None,
        auth_configs: Mapping[str, str] | None = None,
        base_url: str = "https://backend.composio.dev",
        timeout: float | None = 60.0,
        allow_insecure: bool = False,
    ) -> None:
        self._toolkits, self._tools = names(toolkits), names(tools)
        if not self._toolkits and not self._tools:
            raise ValueError("name the toolkits or the tools to take: Composio has too many to take them all")
        rest = Rest(
            base_url,
            title="Composio",
            wanted_by="ComposioClient",
            api_key=("x-api-key", revealed(api_key, "api_key")),
            timeout=timeout,
            allow_insecure=allow_insecure,
        )
        super().__init__(rest, user_id)
        self._version = version
        self._auth_configs = dict(auth_configs or {})

    async def _list(self) -> list[Mapping[str, Any]]:
        wanted = [{"toolkit_slug": toolkit} for toolkit in self._toolkits]
        if self._tools:
            wanted.append({"tool_slugs": ",".join(self._tools)})
        found = {text_of(tool.get("slug")): tool for query in wanted for tool in await self._pages(query)}
        self._known.update(found)
        return [_spec(tool) for tool in found.values()]

    async def _pages(self, query: Mapping[str, str]) -> list[Mapping[str, Any]]:
        async def page(cursor: Any) -> tuple[Any, Any]:
            asked = {**query, **self._versions(), "limit": _PAGE, "cursor": cursor}
            answer = members(await self._rest.ask("GET", "/api/v3.1/tools", query=asked))
            return answer.get("items"), answer.get("next_cursor")

        return await paged(page, "Composio")

    def _versions(self) -> dict[str, str]:
        if isinstance(self._version, Mapping):
            return {f"toolkit_versions[{toolkit}]": version for toolkit, version in self._version.items()}
        return {"toolkit_versions": self._version or "latest"}

    async def _call(self, name: str, arguments: dict[str, Any], user: str) -> Any:
        slug = segment(name, "Composio")
        tool = await self._tool(name, slug)
        toolkit = text_of(members(tool, "toolkit").get("slug"))
        body = {"arguments": arguments, "user_id": user, "version": self._pinned(toolkit) or tool.get("version")}
        try:
            answer = await self._rest.ask("POST", f"/api/v3.1/tools/execute/{slug}", body=body)
        except ExternalToolError as error:
            told = members(error.body, "error")
            if toolkit and _NOT_CONNECTED.search(f"{told.get('slug')} {told.get('name')} {told.get('message')}"):
                raise await self._unconnected(toolkit, user, error) from error
            raise
        told = members(answer)
        if told.get("successful") is True:
            return told.get("data")
        problem = text_of(told.get("error")) or "it does not say why"
        error = self._rest.failure(f"could not run {name}: {problem}", body=answer)
        if toolkit and _NOT_CONNECTED.search(problem):
            raise await self._unconnected(toolkit, user, error)
        raise error

    async def _tool(self, name: str, slug: str) -> Mapping[str, Any]:
        if name not in self._known:
            found = await self._rest.ask("GET", f"/api/v3.1/tools/{slug}", query=self._versions())
            self._known[name] = members(found)
        return self._known[name]

    def _pinned(self, toolkit: str) -> str | None:
        return self._version.get(toolkit) if isinstance(self._version, Mapping) else self._version

    async def _unconnected(self, toolkit: str, user: str, error: ExternalToolError) -> ExternalToolError:
        config = self._auth_configs.get(toolkit) or await self._auth_config(toolkit)
        if not config:
            problem = (
                f"has no auth config to connect {user!r} with {toolkit}: whoever runs this program has to make one"
            )
            return self._rest.failure(problem, body=error.body, retryable=False)
        asked = {"auth_config_id": config, "user_id": user}
        link = members(await self._rest.ask("POST", "/api/v3.1/connected_accounts/link", body=asked))
        return consent(toolkit, link.get("redirect_url"), user, error)

    async def _auth_config(self, toolkit: str) -> str:
        asked = {"toolkit_slug": toolkit}
        found = members(await self._rest.ask("GET", "/api/v3.1/auth_configs", query=asked))
        enabled = [config for config in listed(found.get("items")) if config.get("status", "ENABLED") == "ENABLED"]
        enabled.sort(key=lambda config: text_of(config.get("created_at")))
        return text_of(enabled[-1].get("id")) if enabled else ""


def _spec(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    tags = tool.get("tags")
    return {
        "name": tool.get("slug"),
        "description": tool.get("description"),
        "parameters": tool.get("input_parameters"),
        "annotations": {hint: True for hint in _HINTS if isinstance(tags, list) and hint in tags},
    }
