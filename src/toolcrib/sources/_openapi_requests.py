"""What an operation takes: the arguments a model gives, and the request that is made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from toolcrib.errors import ToolArgumentError
from toolcrib.sources._openapi_bodies import FILE_WORDS, Body, Field, encoded, kind_of
from toolcrib.sources._openapi_document import Document, Found, as_list, as_map
from toolcrib.sources._openapi_operations import Operation, parameters_of
from toolcrib.sources._openapi_schema import Schema, Schemas
from toolcrib.sources._openapi_styles import Style, filled, pairs, query_text, style_of, words

__all__ = ["Plan", "Planner", "Request"]


class _Parameter(NamedTuple):
    """One parameter: what the API calls it, where it goes, and how it is written."""

    name: str
    location: str
    style: Style


class Request(NamedTuple):
    """What is sent, credentials aside; `path` has its query."""

    path: str
    headers: dict[str, str]
    cookies: list[tuple[str, str]]
    content: bytes | None


class Plan(NamedTuple):
    """How arguments become a request.

    Args:
        template: The path, with its braces.
        parameters: By the argument they come from.
        body: What is made of the others, if anything.
    """

    template: str
    parameters: Mapping[str, _Parameter]
    body: Body | None

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """Return the request for arguments.

        Raises:
            ToolArgumentError: One of them cannot be sent.
        """
        values, query = dict[str, tuple[Any, Style]](), list[str]()
        headers, cookies = dict[str, str](), list[tuple[str, str]]()
        in_body = set[str]() if self.body is None else {self.body.whole} if self.body.whole else set(self.body.fields)
        for key, value in arguments.items():
            parameter = self.parameters.get(key)
            if parameter is None:
                if key not in in_body:
                    raise ToolArgumentError(f"{key[:100]}: not a parameter")
            elif parameter.location == "path":
                values[parameter.name] = value, parameter.style
            elif value is None:
                continue
            elif parameter.location == "query":
                query.append(query_text(parameter.name, value, parameter.style))
            elif parameter.location == "header":
                headers[parameter.name.lower()] = _header(parameter, value)
            else:
                cookies += pairs(parameter.name, value, parameter.style)
        content = None if self.body is None else encoded(self.body, arguments)
        if content is not None:
            headers["content-type"] = content[1]
        return Request(_address(self.template, values, query), headers, cookies, content[0] if content else None)


def _address(template: str, values: Mapping[str, tuple[Any, Style]], query: list[str]) -> str:
    path, _, fixed = template.partition("#")[0].partition("?")
    for name in _BRACES.findall(path):
        if name not in values:
            raise ToolArgumentError(f"{name}: required, but missing")
    asked = "&".join(filter(None, [quote(fixed, safe=_QUERY), *query]))
    return filled(path, values) + (f"?{asked}" if asked else "")


_BRACES = re.compile(r"\{([^{}/]+)\}")
_QUERY = "/:@!$&'()*+,;=~-._%?"


def _header(parameter: _Parameter, value: Any) -> str:
    if parameter.style.name == "json" or not isinstance(value, list | dict):
        text = words(value) if parameter.style.name != "json" else pairs("", value, parameter.style)[0][1]
    elif isinstance(value, list):
        text = ",".join(map(words, cast("list[Any]", value)))
    else:
        joint = "=" if parameter.style.explode else ","
        text = ",".join(f"{key}{joint}{words(item)}" for key, item in cast("dict[str, Any]", value).items())
    if not (text.isascii() and text.isprintable()):
        raise ToolArgumentError(f"{parameter.name}: a header takes only printable ASCII characters")
    return text.strip()


class Planner:
    """Makes plans for the operations of one document.

    Args:
        document: The document.
        schemas: Its schemas.
        hidden: What no model is asked for, by location and name in lower case: credentials, and headers that are given.
    """

    def __init__(self, document: Document, schemas: Schemas, hidden: frozenset[tuple[str, str]]) -> None:
        self._document = document
        self._schemas = schemas
        self._hidden = hidden

    def plan(self, one: Operation) -> tuple[Plan, Schema]:
        """Return the plan of an operation and the schema of its arguments.

        Raises:
            Lost: It cannot be called, for the reason said.
        """
        arguments = _Arguments()
        template = list(dict.fromkeys(_BRACES.findall(one.path.partition("?")[0].partition("#")[0])))
        declared = parameters_of(self._document, one)
        for name in template:
            if ("path", name) in declared:
                continue
            self._schemas.note(f"the path parameter {name!r:.100} is not declared: it takes text")
            declared["path", name] = Found({"schema": {"type": "string"}}, one.base, "")
        body = self._body(one)
        order = sorted(declared.items(), key=lambda item: _order(*item[0], template))
        taken = {name for _, name in declared}.union(body[2] if body else ())
        for (location, name), found in order:
            if self._is_wanted(location, name, template):
                schema, style = self._parameter(found, location)
                required = location == "path" or found.node.get("required") is True
                key = arguments.add(location, name, schema, required=required, taken=taken)
                arguments.parameters[key] = _Parameter(name, location, style)
        made = None if body is None else arguments.with_body(*body, taken=taken)
        schema = self._schemas.with_parts(arguments.schema())
        return Plan(one.path, arguments.parameters, made), schema

    def _is_wanted(self, location: str, name: str, template: list[str]) -> bool:
        if (location, name.lower()) in self._hidden or (location == "header" and name.lower() in _IGNORED):
            return False
        problem = ""
        if location not in _LOCATIONS:
            problem = f"nothing can be sent in {location!r:.50}"
        elif location == "path" and name not in template:
            problem = "the path has no place for it"
        elif location == "header" and (name.lower() in _OWN_HEADERS or not _HEADER_NAME.fullmatch(name)):
            problem = "that header is the client's own"
        if problem:
            self._schemas.note(f"the {location:.50} parameter {name!r:.100} is left out: {problem}")
        return not problem

    def _parameter(self, found: Found, location: str) -> tuple[Schema, Style]:
        node, style = as_map(found.node), style_of(found.node, location)
        content = as_map(node.get("content"))
        told = node.get("schema", {"type": "string"})
        if content:
            media, inner = next(iter(content.items()))
            told = as_map(inner).get("schema", {})
            style = Style("json", explode=False) if kind_of(media) == "json" else style
        beside = {word: node[word] for word in ("description", "example", "deprecated") if word in node}
        schema = self._schemas.converted(told, found.base)
        extra = self._schemas.converted(beside, found.base) if beside else {}
        return {**schema, **extra}, style

    # -- bodies

    def _body(self, one: Operation) -> tuple[Body, Schema, dict[str, Any], list[str]] | None:
        """Return how the body is made, its schema, and, when it is flat, its properties and those it requires."""
        if "requestBody" not in one.node:
            return None
        told = self._document.resolved(one.node["requestBody"], one.base)
        content = {media: found for media, found in as_map(told.node.get("content")).items() if _MEDIA.fullmatch(media)}
        if not content:
            self._schemas.note("its request body has no media type: none is sent")
            return None
        media = min(content, key=_preference)
        if others := [other for other in content if other != media]:
            self._schemas.note(f"its body is sent as {media}, not as {', '.join(others)[:200]}")
        inner = self._document.resolved(content[media], told.base)
        schema = self._schemas.converted(inner.node.get("schema", {}), inner.base)
        if "description" in told.node:
            schema = {**schema, "description": str(told.node["description"])}
        body = Body(media, kind_of(media), told.node.get("required") is True, "body", {})
        if body.kind == "raw":
            return body, _raw_schema(media, schema), {}, []
        properties, required = self._flat(schema, 0) or ({}, [])
        if body.kind in ("form", "multipart"):
            source = properties or as_map(self._schemas.target(schema).get("properties"))
            fields = {name: self._field(name, inner.node, prop, body.kind) for name, prop in source.items()}
            body = body._replace(fields=fields)
            properties = {name: self._shown_field(fields[name], prop) for name, prop in properties.items()}
        if not properties or (required and not body.required):
            return body, schema, {}, []
        return body._replace(whole=""), schema, properties, required

    def _flat(self, schema: Schema, depth: int) -> tuple[dict[str, Any], list[str]] | None:
        """Return the properties of a plain object and those it requires; None for anything else."""
        schema = self._schemas.target(schema)
        kind = schema.get("type", "object")
        if depth > _DEEPEST or (kind != "object" and not (isinstance(kind, list) and "object" in kind)):
            return None
        if not _FLAT.issuperset(schema) or not all(_only_requires(schema.get(word)) for word in ("anyOf", "if")):
            return None
        if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
            return None
        properties: dict[str, Any] = dict(as_map(schema.get("properties")))
        required = list(schema.get("required", ()))
        for part in as_list(schema.get("allOf")):
            inner = self._flat(as_map(part), depth + 1)
            if inner is None or any(properties.get(name, prop) != prop for name, prop in inner[0].items()):
                return None
            properties |= inner[0]
            required += inner[1]
        return properties, [name for name in dict.fromkeys(required) if name in properties]

    def _field(self, name: str, media: Mapping[str, Any], schema: Any, kind: str) -> Field:
        told = as_map(as_map(media.get("encoding")).get(name))
        content_type = told.get("contentType")
        if not isinstance(content_type, str) or not _MEDIA.fullmatch(content_type) or "*" in content_type:
            content_type = None
        style = style_of(told, "query") if kind == "form" and "style" in told else None
        target = self._schemas.target(as_map(schema))
        item = self._schemas.target(as_map(target.get("items"))) if target.get("type") == "array" else target
        return Field(name, style, content_type, kind == "multipart" and _is_file(item))

    def _shown_field(self, field: Field, schema: Any) -> Any:
        if not field.is_file:
            return schema
        target = self._schemas.target(as_map(schema))
        if target.get("type") == "array":
            return {**target, "items": _file_schema(as_map(target.get("items")))}
        return _file_schema(target)


def _is_file(schema: Schema) -> bool:
    if schema.get("format") == "binary":
        return True
    return "contentMediaType" in schema and "contentEncoding" not in schema


def _file_schema(schema: Schema) -> Schema:
    said = str(schema.get("description", "")).strip()
    return {"type": "string", "description": f"{said} {FILE_WORDS}".strip()}


def _raw_schema(media: str, schema: Schema) -> Schema:
    if media.startswith("text/") or media.endswith(("xml", "yaml")):
        said = str(schema.get("description", "")).strip() or f"The body, as {media}"
        return {"type": "string", "description": said}
    return _file_schema(schema)


def _only_requires(choice: Any) -> bool:
    return all(not as_map(part).keys() - {"required"} for part in as_list(choice))


def _preference(media: str) -> tuple[int, bool, bool]:
    """Return how gladly a body is sent so, the lowest first; a list of changes is hard to write for a model."""
    return _KINDS.index(kind_of(media)), "json-patch" in media or "*" in media, media != "application/json"


def _order(location: str, name: str, template: list[str]) -> tuple[int, int]:
    """Return where a parameter stands: by location, and in the path as the path has them."""
    return _LOCATIONS.get(location, 9), template.index(name) if location == "path" and name in template else 0


_LOCATIONS = {"path": 0, "query": 1, "header": 2, "cookie": 3}
_KINDS = ("json", "form", "multipart", "raw")
_DEEPEST = 8
_MEDIA = re.compile(r"[\w!#$&^*.+-]+/[\w!#$&^*.+-]+(\s*;[ -~]*)?", re.ASCII)
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
#: An object of no other words is as well told by its properties alone.
_FLAT = frozenset(
    {
        *("type", "properties", "required", "description", "title", "default", "examples", "deprecated", "format"),
        *("additionalProperties", "minProperties", "maxProperties", "allOf", "anyOf"),
    }
)
#: Which OpenAPI says are described elsewhere.
_IGNORED = frozenset({"accept", "content-type", "authorization"})
#: A model that chose these could lead a request, or its answer, astray.
_OWN_HEADERS = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect"),
        *("keep-alive", "proxy-authorization", "proxy-connection", "cookie", "content-encoding", "accept-encoding"),
    }
)


class _Arguments:
    """The arguments of one tool, each under a name of its own."""

    def __init__(self) -> None:
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.parameters: dict[str, _Parameter] = {}

    def add(self, location: str, name: str, schema: Any, *, required: bool, taken: set[str]) -> str:
        """Add one; the second of a name is called after its location, as in `body_id`."""
        key, number = name, 1
        while key in self.properties or (key != name and key in taken):
            key = f"{location}_{name}" if number == 1 else f"{location}_{name}_{number}"
            number += 1
        self.properties[key] = schema
        if required:
            self.required.append(key)
        return key

    def with_body(
        self, body: Body, schema: Schema, properties: Mapping[str, Any], required: list[str], *, taken: set[str]
    ) -> Body:
        if body.whole:
            return body._replace(whole=self.add("request", "body", schema, required=body.required, taken=taken))
        fields = dict[str, Field]()
        for name, one in properties.items():
            key = self.add("body", name, one, required=name in required, taken=taken)
            fields[key] = body.fields.get(name, Field(name))
        return body._replace(fields=fields)

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "properties": self.properties, "required": self.required}
        if not self.required:
            del schema["required"]
        return {**schema, "additionalProperties": False}
