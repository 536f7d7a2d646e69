"""OpenAPI documents as tools: which there are, what they are called, and what becomes of the rest."""

from __future__ import annotations

import json

import pytest

from toolcrib import OpenAPI, OpenAPIError, ToolcribWarning, Toolset
from toolcrib.limits import MAX_OPERATION_SCHEMA_CHARS


def document(paths, *, version="3.1.0", **more):
    return {"openapi": version, "info": {"title": "t", "version": "1"}, "paths": paths, **more}


def operation(**told):
    return {"responses": {"200": {"description": "ok"}}, **told}


def tools_of(paths, *, version="3.1.0", **options):
    given = options.pop("components", None)
    more = {} if given is None else {"components": given}
    source = OpenAPI(document(paths, version=version, **more), **options)
    return {tool.name: tool for tool in source.as_tools()}, source.report


def test_every_operation_of_petstore_is_a_tool(shared_data):
    source = OpenAPI(shared_data / "openapi" / "petstore.yaml")
    tools = {tool.name: tool for tool in source.as_tools()}
    assert len(tools) == 19
    assert source.report.skipped == ()
    assert source.report.imported == tuple(tools)
    update = tools["updatePet"]
    assert update.effect == "idempotent"
    assert update.origin == "openapi:petstore.yaml"
    assert update.input_schema["required"] == ["name", "photoUrls"]
    assert update.input_schema["properties"]["category"] == {"$ref": "#/$defs/Category"}
    assert set(update.input_schema["$defs"]) == {"Category", "Tag"}
    assert "api_key" not in tools["deletePet"].input_schema["properties"]


def test_every_operation_of_uspto_is_a_tool(shared_data):
    source = OpenAPI(shared_data / "openapi" / "uspto.json")
    assert source.report.imported == ("list-data-sets", "list-searchable-fields", "perform-search")
    search = source.as_tools()[2]
    assert search.effect == "write"
    assert search.input_schema["properties"]["body"]["properties"]["criteria"]["default"] == "*:*"
    assert search.input_schema["required"] == ["dataset", "version"]


@pytest.mark.parametrize(
    ("method", "effect"),
    [
        ("get", "read"),
        ("head", "read"),
        ("options", "read"),
        ("trace", "read"),
        ("put", "idempotent"),
        ("delete", "destructive"),
        ("post", "write"),
        ("patch", "write"),
    ],
)
def test_the_effect_is_that_of_the_method(method, effect):
    tools, _ = tools_of({"/a": {method: operation(operationId="x")}})
    assert tools["x"].effect == effect


# -- names


@pytest.mark.parametrize(
    ("told", "path", "name"),
    [
        ({"operationId": "repos/get-content"}, "/a", "repos_get-content"),
        ({"operationId": "x.y z"}, "/a", "x_y_z"),
        ({}, "/pets/{petId}/toys", "get_pets_by_petId_toys"),
        ({}, "/", "get"),
        ({"operationId": ""}, "/a", "get_a"),
        ({"operationId": 7}, "/a", "get_a"),
        ({"operationId": "é"}, "/a", "operation"),
    ],
)
def test_a_name_is_legal_everywhere_and_remembers_its_original(told, path, name):
    tools, _ = tools_of({path: {"get": operation(**told)}})
    assert list(tools) == [name]
    said = told.get("operationId")
    assert tools[name].original_name == (said if isinstance(said, str) and said else f"GET {path}")


def test_names_that_clash_or_are_too_long_are_told_apart_whatever_else_there_is():
    paths = {
        f"/{key}": {"get": operation(operationId=name)} for key, name in [("a", "x/y"), ("b", "x.y"), ("c", "x/y")]
    }
    paths["/long"] = {"get": operation(operationId="n" * 100)}
    tools, _ = tools_of(paths)
    first, second, third, long = tools
    assert first == "x_y"
    assert len({first, second, third}) == 3
    assert len(long) == 64
    assert [tool.original_name for tool in tools.values()] == ["x/y", "x.y", "GET /c", "n" * 100]
    alone, _ = tools_of({"/long": paths["/long"]})
    assert list(alone) == [long]


def test_filters_go_by_original_names_and_globs_on_names_with_their_prefix():
    paths = {f"/{name}": {"get": operation(operationId=f"pets/{name}")} for name in "abc"}
    tools, report = tools_of(paths, include=["pets/a", "pets/b"], name_prefix="shop.", deny="shop.*_b")
    assert list(tools) == ["shop.pets_a"]
    assert tools["shop.pets_a"].original_name == "pets/a"
    assert [line.operation for line in report.skipped] == ["GET /b", "GET /c"]
    assert "left out by include" in report.skipped[0].reason
    with pytest.warns(ToolcribWarning, match="original name of no tool"):
        tools_of(paths, include=["a"])


# -- what is no tool


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        ({"a": {"get": operation()}}, "does not begin with a slash"),
        ({"@evil.example/a": {"get": operation()}}, "does not begin with a slash"),
        ({"//evil.example/a": {"get": operation()}}, "another host"),
        ({"/a\\b": {"get": operation()}}, "another host"),
        ({"/a\nb": {"get": operation()}}, "another host"),
        ({"/a/../b": {"get": operation()}}, "out of itself"),
        ({"/a/%2e%2e/b": {"get": operation()}}, "out of itself"),
        ({"/a": {"get": "nonsense"}}, "no object"),
        ({"/a": "nonsense"}, "text stands where an object should"),
        ({"/a": {"$ref": "#/components/pathItems/no"}}, "leads nowhere"),
        ({"/a": {"fetch": operation()}}, "not a method"),
        ({"/a": {"get": operation(parameters=[{"$ref": "#/no"}])}}, "leads nowhere"),
        ({"/a": {"get": operation(parameters=[{"in": "query"}])}}, "no name"),
        ({"/a": {"post": operation(requestBody={"$ref": "#/no"})}}, "leads nowhere"),
        ({"/a": {"get": operation(parameters=[{"$ref": "#/paths/~1a/get/parameters/0"}])}}, "in a circle"),
    ],
)
def test_what_cannot_be_a_tool_is_a_line_of_the_report_and_the_rest_is_there(paths, reason):
    with pytest.warns(ToolcribWarning, match="openapi:the document: left out"):
        tools, report = tools_of({**paths, "/fine": {"get": operation(operationId="fine")}})
    assert list(tools) == ["fine"]
    (line,) = report.skipped
    assert reason in line.reason


def test_webhooks_are_lines_of_the_report():
    source = OpenAPI(document({}, webhooks={"new": {"post": operation()}}))
    assert source.report.skipped == (("webhook new POST", "a webhook is called by the API, not by its clients"),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"swagger": "2.0", "paths": {}}, "is Swagger 2.0: convert it to OpenAPI 3"),
        ({"paths": {}}, "says nothing of a version"),
        ({"openapi": "4.0.0"}, "says version 4.0.0"),
        ({"openapi": None}, "says nothing of a version"),
    ],
)
def test_what_is_no_document_of_version_three_is_refused_with_what_to_do(given, message):
    with pytest.raises(OpenAPIError, match=message):
        OpenAPI(given).as_tools()


@pytest.mark.parametrize("given", [7, None, b"{}", ["a"]])
def test_a_document_is_a_path_an_address_or_data(given):
    with pytest.raises(TypeError, match="a path, an address or a mapping"):
        OpenAPI(given)


def test_nonsense_in_every_place_never_fails_the_document():
    nonsense = [None, 7, "x", [], [None], {}, {"x": None}, True]
    for bad in nonsense:
        for place in ("servers", "components", "security", "webhooks", "tags"):
            source = OpenAPI({**document({"/a": {"get": operation(operationId="a")}}), place: bad})
            assert source.report.imported == ("a",), (place, bad)
        for place in ("parameters", "requestBody", "responses", "security", "servers", "summary", "description"):
            source = OpenAPI(document({"/a": {"get": operation(**{"operationId": "a", place: bad})}}))
            assert len(source.report.imported) + len(source.report.skipped) == 1, (place, bad)
        for place in ("schema", "style", "explode", "required", "description", "example", "content"):
            told = {"name": "p", "in": "query", place: bad}
            source = OpenAPI(document({"/a": {"get": operation(operationId="a", parameters=[told])}}))
            assert len(source.report.imported) + len(source.report.skipped) == 1, (place, bad)


# -- descriptions


def test_a_description_is_summary_and_description_without_what_a_terminal_obeys():
    told = operation(operationId="x", summary="Do it.", description="Do it \x1b[31mwell\x1b[0m.", deprecated=True)
    tools, _ = tools_of({"/a": {"get": told}})
    assert tools["x"].description == "Deprecated.\n\nDo it.\n\nDo it well."


# -- reading again


def test_a_file_is_read_again_when_it_has_changed(tmp_path):
    path = tmp_path / "api.json"
    path.write_text(json.dumps(document({"/a": {"get": operation(operationId="a")}})))
    toolset = Toolset([OpenAPI(path)])
    before = toolset["a"]
    assert not toolset.refresh()
    assert toolset["a"] is before
    path.write_text(json.dumps(document({"/b": {"get": operation(operationId="b")}})))
    changes = toolset.refresh()
    assert (changes.added, changes.removed) == (("b",), ("a",))


# -- sizes


def test_a_schema_too_large_for_any_model_is_cut_where_it_is_farthest_and_says_so():
    parts = {
        f"P{i}": {
            "type": "object",
            "description": "x" * 4_000,
            "properties": {"next": {"$ref": f"#/components/schemas/P{i + 1}"}},
        }
        for i in range(40)
    }
    parts["P40"] = {"type": "string"}
    told = operation(
        operationId="x",
        requestBody={
            "content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/P0"}}}}
        },
    )
    tools, report = tools_of({"/a": {"post": told}}, components={"schemas": parts})
    schema = tools["x"].input_schema
    assert len(json.dumps(schema)) < MAX_OPERATION_SCHEMA_CHARS + 1_000
    assert schema["$defs"]["P0"]["properties"]["next"] == {"$ref": "#/$defs/P1"}
    assert schema["$defs"]["P9"] == {"type": "object"}
    assert "is cut" in report.notes[0].reason


def test_a_schema_far_too_large_by_itself_is_a_line_of_the_report():
    schema = {"enum": ["x" * MAX_OPERATION_SCHEMA_CHARS] * 11}
    told = operation(operationId="x", parameters=[{"name": "p", "in": "query", "schema": schema}])
    source = OpenAPI(document({"/a": {"get": told}}))
    assert "which no model reads" in source.report.skipped[0].reason
