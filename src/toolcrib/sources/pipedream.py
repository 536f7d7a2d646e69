"""The actions of Pipedream Connect, over its REST interface."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from toolcrib._secrets import Secret
from toolcrib.errors import ExternalToolError
from toolcrib.sources._hosted import HostedTools, UserId, consent, listed, members, names, paged, revealed, text_of
from toolcrib.sources._pipedream_props import apps_of, configured, missing, reloads, reserved, schema_of
from toolcrib.sources._rest import Rest, segment

__all__ = ["PipedreamClient"]

_PAGE = 100
_UNAUTHORIZED = 401
_EARLY_SECONDS = 60.0  # a token is renewed before it ends
_SHORTEST_SECONDS = 1.0


class PipedreamClient(HostedTools):
    """The actions of some of Pipedream's apps; put it in an ExternalToolProvider.

    A call runs the version of the action that was listed, with the newest healthy account that its user has
    connected of each app it needs. Where there is none, it fails with an AuthorizationNeededError that has the link.

    Args:
        client_id: The id of the OAuth client.
        client_secret: Its secret.
        project_id: The Connect project, as in `proj_...`.
        user_id: Whose accounts calls use, or a function of a call's ToolContext that says so.
        apps: Apps whose actions to list, by slug, as in `slack`.
        search: Words to search actions by, in place of apps or within them.
        version: The version of each action to run, in place of the one that was listed.
        environment: `production` or `development`.
        base_url: Where Pipedream is.
        timeout: Seconds one request may take in all; None for no end.
        allow_insecure: Whether the secret may be sent over plain http to another machine.

    Raises:
        ValueError: An address, a credential or a timeout that is none, or neither apps nor a search.
        MissingExtraError: The `http` extra is not installed.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str | Secret,
        *,
        project_id: str,
        user_id: UserId,
        apps: str | Iterable[str] = (),
        search: str | None = None,
        version: str | None = None,
        environment: str = "production",
        base_url: str = "https://api.pipedream.com",
        timeout: float | None = 60.0,
        allow_insecure: bool = False,
    ) -> None:
        self._apps, self._search = names(apps), search
        if not self._apps and not search:
            raise ValueError("name the apps to take, or search: Pipedream has too many actions to take them all")
        rest = Rest(
            base_url,
            title="Pipedream",
            wanted_by="PipedreamClient",
            headers={"x-pd-environment": environment},
            timeout=timeout,
            allow_insecure=allow_insecure,
            sends_credentials=True,
        )
        super().__init__(rest, user_id)
        self._client = revealed(client_id, "client_id"), Secret(revealed(client_secret, "client_secret"))
        self._base = f"/v1/connect/{quote(revealed(project_id, 'project_id'), safe='')}"
        self._version = version
        self._token, self._ends = Secret(""), 0.0

    async def _list(self) -> list[Mapping[str, Any]]:
        wanted = self._apps or (None,)
        found = {text_of(action.get("key")): action for app in wanted for action in await self._pages(app)}
        self._known.update(found)
        return [_spec(action) for action in found.values()]

    async def _pages(self, app: str | None) -> list[Mapping[str, Any]]:
        async def page(cursor: Any) -> tuple[Any, Any]:
            asked = {"app": app, "q": self._search, "limit": _PAGE, "after": cursor}
            answer = members(await self._ask("GET", "/actions", query=asked))
            return answer.get("data"), members(answer, "page_info").get("end_cursor")

        return await paged(page, "Pipedream")

    async def _call(self, name: str, arguments: dict[str, Any], user: str) -> Any:
        action = await self._action(name)
        props = action.get("configurable_props")
        self._check(name, props, arguments)
        accounts = {prop: await self._account(app, user) for prop, app in apps_of(props).items()}
        given = {**configured(props, arguments), **accounts}
        asked = {"id": name, "version": self._version or action.get("version"), "external_user_id": user}
        if reloads(props):
            asked["dynamic_props_id"], more = await self._reloaded(name, {**asked, "configured_props": given})
            self._check(name, more, arguments)
            given = {**configured([*listed(props), *listed(more)], arguments), **accounts}
            if wanted := missing(more, given):
                raise self._rest.failure(f"needs more arguments for {name}: {wanted}", retryable=False)
        answer = members(await self._ask("POST", "/actions/run", body={**asked, "configured_props": given}))
        failures = [members(one, "err") for one in listed(answer.get("os"))]
        if told := next(filter(None, failures), None):
            raise self._rest.failure(f"could not run {name}: {_reason(told)}", body=answer)
        value, exports = answer.get("ret"), members(answer, "exports")
        return exports if value is None and exports else value

    def _check(self, name: str, props: Any, arguments: Mapping[str, Any]) -> None:
        if kept := reserved(props, arguments):
            raise self._rest.failure(f"does not let {', '.join(kept)} of {name} be set by a call", retryable=False)

    async def _reloaded(self, name: str, asked: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the id of the props that depend on those given, and what they are."""
        answer = members(await self._ask("POST", "/actions/props", body=asked))
        if problems := answer.get("errors"):
            raise self._rest.failure(f"could not prepare {name}: {problems!s:.500}", body=answer)
        dynamic = members(answer, "dynamicProps") or members(answer, "dynamic_props")
        return dynamic.get("id"), dynamic.get("configurableProps") or dynamic.get("configurable_props")

    async def _action(self, name: str) -> Mapping[str, Any]:
        if name not in self._known:
            found = await self._ask("GET", f"/actions/{segment(name, 'Pipedream')}")
            self._known[name] = members(found, "data")
        return self._known[name]

    async def _account(self, app: str, user: str) -> Mapping[str, Any]:
        asked = {"external_user_id": user, "app": app}
        found = listed(members(await self._ask("GET", "/accounts", query=asked)).get("data"))
        usable = [one for one in found if one.get("dead") is not True and one.get("healthy") is not False]
        usable.sort(key=lambda one: text_of(one.get("created_at")))
        if usable and text_of(usable[-1].get("id")):
            return {"authProvisionId": usable[-1]["id"]}
        link = members(await self._ask("POST", "/tokens", body={"external_user_id": user}))
        url = text_of(link.get("connect_link_url"))
        problem = f"has no usable account of {app} for {user!r}, and gave no link to connect one"
        raise consent(
            app,
            url and f"{url}{'&' if '?' in url else '?'}app={quote(app, safe='')}",
            user,
            self._rest.failure(problem),
        )

    # -- tokens

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        for last in (False, True):
            token = await self._bearer()
            try:
                return await self._rest.ask(method, f"{self._base}{path}", headers=token, **options)
            except ExternalToolError as error:
                if last or error.status != _UNAUTHORIZED:
                    raise
                self._ends = 0.0  # it was taken back before its time
        raise AssertionError

    async def _bearer(self) -> dict[str, str]:
        if time.monotonic() >= self._ends:
            client_id, secret = self._client
            asked = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret.reveal()}
            answer = members(await self._rest.ask("POST", "/v1/oauth/token", body=asked))
            token, seconds = text_of(answer.get("access_token")), answer.get("expires_in")
            if not token or not token.isascii() or not token.isprintable():
                raise self._rest.failure("gave no access token")
            lasts = float(seconds) if isinstance(seconds, int | float) else 0.0
            self._token, self._ends = Secret(token), time.monotonic() + max(_SHORTEST_SECONDS, lasts - _EARLY_SECONDS)
        return {"authorization": f"Bearer {self._token.reveal()}"}


def _reason(told: Mapping[str, Any]) -> str:
    return text_of(told.get("message")) or text_of(told.get("name")) or "it does not say why"


def _spec(action: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "name": action.get("key"),
        "description": text_of(action.get("description")) or action.get("name"),
        "parameters": schema_of(action.get("configurable_props")),
        "annotations": action.get("annotations"),
    }
