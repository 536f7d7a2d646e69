"""Pipedream's configurable props as JSON Schema, and arguments as the props that are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.sources._hosted import listed, members, text_of

__all__ = ["apps_of", "configured", "missing", "reloads", "reserved", "schema_of"]

_TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "any": {},
    "sql": {"type": "string"},
    "http_request": {"type": "object"},
    "$.airtable.baseId": {"type": "string"},
    "$.airtable.tableId": {"type": "string"},
    "$.airtable.viewId": {"type": "string"},
    "$.airtable.fieldId": {"type": "string"},
    "$.discord.channel": {"type": "string"},
}
_NOT_FOR_A_MODEL = ("hidden", "disabled", "readOnly", "secret")


def schema_of(props: Any) -> dict[str, Any]:
    """Return the JSON Schema of the props that a model may set.

    Accounts are set by the client, and services of Pipedream itself by nobody. A prop that other props depend on
    leaves the object open, since those are known only when it is set.
    """
    shown = [prop for prop in listed(props) if _is_shown(prop)]
    return {
        "type": "object",
        "properties": {prop["name"]: _schema(prop) for prop in shown},
        "required": [prop["name"] for prop in shown if _is_required(prop)],
        **({"additionalProperties": True} if reloads(props) else {}),
    }


def reloads(props: Any) -> bool:
    """Whether other props depend on one of these."""
    return any(prop.get("reloadProps") is True for prop in listed(props))


def apps_of(props: Any) -> dict[str, str]:
    """Return the app that each prop cannot do without an account of."""
    wanted = [prop for prop in listed(props) if prop.get("type") == "app" and prop.get("optional") is not True]
    pairs = {text_of(prop.get("name")): text_of(prop.get("app")) for prop in wanted}
    return {name: app for name, app in pairs.items() if name and app}


def configured(props: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as they are sent: with defaults, and with labels and SQL in the form Pipedream wants."""
    known = {text_of(prop.get("name")): prop for prop in listed(props)}
    plain = {name: prop for name, prop in known.items() if _base(text_of(prop.get("type"))) in _TYPES}
    defaults = {name: prop["default"] for name, prop in plain.items() if prop.get("default") is not None}
    return {name: _value(known.get(name, {}), value) for name, value in {**defaults, **arguments}.items()}


def reserved(props: Any, arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments that are no model's to give, such as somebody's account."""
    return [name for prop in listed(props) if (name := text_of(prop.get("name"))) in arguments and not _is_shown(prop)]


def missing(props: Any, given: Mapping[str, Any]) -> str:
    """Return the required props that were not given, as a line for a model."""
    wanted = [prop for prop in listed(props) if _is_shown(prop) and _is_required(prop) and prop["name"] not in given]
    return "; ".join(f"{prop['name']} ({_words(prop) or text_of(prop.get('type'))})" for prop in wanted)


def _is_shown(prop: Mapping[str, Any]) -> bool:
    plain = _base(text_of(prop.get("type"))) in _TYPES and bool(text_of(prop.get("name")))
    return plain and not any(prop.get(mark) is True for mark in _NOT_FOR_A_MODEL)


def _is_required(prop: Mapping[str, Any]) -> bool:
    return prop.get("optional") is not True and prop.get("default") is None


def _base(kind: str) -> str:
    return kind.removesuffix("[]")


def _schema(prop: Mapping[str, Any]) -> dict[str, Any]:
    kind = text_of(prop.get("type"))
    inner = dict(_TYPES[_base(kind)])
    if choices := _choices(prop):
        inner["enum"] = choices
    schema: dict[str, Any] = {"type": "array", "items": inner} if kind.endswith("[]") else inner
    if words := _words(prop):
        schema["description"] = words
    if prop.get("default") is not None:
        schema["default"] = prop["default"]
    return schema


def _words(prop: Mapping[str, Any]) -> str:
    told = [text_of(prop.get("label")), text_of(prop.get("description"))]
    labels = [f"{option['value']}: {option['label']}" for option in map(_option, _options(prop)) if _says_more(option)]
    told.append("; ".join(labels))
    return ". ".join(words.strip().rstrip(".") for words in told if words.strip())


def _choices(prop: Mapping[str, Any]) -> list[Any]:
    """Return the values to choose from; those that are looked up at the app are known there alone."""
    if prop.get("remoteOptions") is True:
        return []
    return [option["value"] for option in map(_option, _options(prop))]


def _options(prop: Mapping[str, Any]) -> list[Any]:
    options = prop.get("options")
    return cast("list[Any]", options) if isinstance(options, list) else []


def _option(given: Any) -> Mapping[str, Any]:
    """Read a plain value, one with a label, or one with a label inside `__lv`."""
    labelled = members(given, "__lv") or members(given)
    return labelled if "value" in labelled else {"value": given}


def _says_more(option: Mapping[str, Any]) -> bool:
    return bool(text_of(option.get("label"))) and option["label"] != option["value"]


def _value(prop: Mapping[str, Any], value: Any) -> Any:
    if prop.get("type") == "sql" and isinstance(value, str):
        return {"value": value, "query": value, "params": [], "usePreparedStatements": False}
    if prop.get("withLabel") is not True:
        return value
    if isinstance(value, list):
        return [_labelled(prop, one) for one in cast("list[Any]", value)]
    return _labelled(prop, value)


def _labelled(prop: Mapping[str, Any], value: Any) -> Any:
    if members(value, "__lv"):
        return value
    labels = [text_of(option.get("label")) for option in map(_option, _options(prop)) if option["value"] == value]
    return {"__lv": {"label": next(filter(None, labels), str(value)), "value": value}}
