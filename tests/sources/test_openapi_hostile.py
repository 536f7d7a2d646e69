"""Documents, references, paths and values that try to lead elsewhere; and beside them what must go through."""

from __future__ import annotations

import functools
import json
import tracemalloc
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import RedirectResponse, Response

from toolcrib import OpenAPI, OpenAPIError, ToolArgumentError, ToolCall, Toolset, call_tools
from toolcrib.limits import MAX_DOCUMENT_DEPTH
from toolcrib.sources._openapi_styles import Style, filled


def api(echo, path="/items/{id}", **told):
    parameters = [{"name": name, "in": "path", "required": True} for name in ("id", "rest") if f"{{{name}}}" in path]
    operation = {"operationId": "x", "parameters": parameters, "responses": {}, **told}
    return OpenAPI({"openapi": "3.0.0", "paths": {path: {"get": operation}}}, base_url=f"{echo.url}/v1")


# -- values of a path

REFUSED = [
    *("", ".", "..", "../", "/..", "a/..", "a/../b", "../../etc/passwd", "./a", "a/./b", "..;/admin", "a/..;/b", ";.."),
    *("..\\", "\\..", "a\\..\\b", "..\\/", "%2e%2e", "%2E%2E", "%2e.", ".%2e", "..%2f", "a%2f..%2fb", "%2e%2e%2fadmin"),
    *("%252e%252e", "%25252e%25252e", "..%5c", "%2e%2e%5cadmin", " ..", ".. ", "a/ .. /b", "\x00", "a\x00b", "a\r\nb"),
    *("a\tb", "%00", "%0d%0aX-Evil:1", "..%00/", "%" + "25" * 40 + "2e", "\ud800", "..%252f..", "a\x7f"),
]
ACCEPTED = [
    *(
        "a",
        "a b",
        "a/b",
        "src/main.py",
        "/leading",
        "trailing/",
        "a//b",
        "...",
        "a..b",
        "..a",
        "a..",
        ".hidden",
        "v1.2",
    ),
    *(
        "a?b=c",
        "a#b",
        "a&b",
        "a%b",
        "100%",
        "%41",
        "a;b=c",
        "a:b@c",
        "user@host",
        "http://evil.example/",
        "//evil.example",
    ),
    *(
        "@evil.example",
        "\\\\share",
        "über",
        "日本",
        "🙂",
        "{id}",
        "{rest}",
        "a+b",
        "a=b",
        "~root",
        "*",
        "'",
        '"',
        "<x>",
        "-1",
        "0",
    ),
]


@pytest.mark.parametrize("value", REFUSED)
def test_a_value_that_would_lead_to_another_path_is_refused_and_nothing_is_sent(echo, value):
    (result,) = call_tools([ToolCall("1", "x", {"id": value})], Toolset([api(echo)]))
    assert result.kind == "invalid_arguments"
    assert not echo.asked


@pytest.mark.parametrize("value", ACCEPTED)
def test_any_other_value_arrives_as_it_is_in_one_segment_of_the_same_host(echo, value):
    found = api(echo).as_tools()[0].call({"id": value})
    assert found["segments"] == ["v1", "items", value]
    assert found["query"] == ""
    assert found["headers"]["host"] == urlsplit(echo.url).netloc


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("/a/{id}{rest}", {"id": ".", "rest": "."}),
        ("/a/.{id}", {"id": "."}),
        ("/a/{id}.", {"id": "."}),
        ("/a/{id}%2e", {"id": "."}),
        ("/{id}/{rest}", {"id": "a", "rest": ".."}),
        ("/{id}/{rest}", {"id": "", "rest": "a"}),
    ],
)
def test_values_that_would_lead_elsewhere_together_are_refused(echo, template, values):
    (result,) = call_tools([ToolCall("1", "x", values)], Toolset([api(echo, template)]))
    assert result.kind == "invalid_arguments"
    assert not echo.asked


@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
@pytest.mark.parametrize("explode", [True, False])
@pytest.mark.parametrize("value", [[".."], ["a", "../b"], {"..": "a"}, {"a": "/../"}, [], {}, [""], ["", ""]])
def test_lists_and_objects_lead_no_further_than_texts(style, explode, value):
    try:
        path = filled("/a/{id}/b", {"id": (value, Style(style, explode))})
    except ToolArgumentError:
        return
    first, second, *rest = [unquote(part) for part in path.split("/")][1:]
    assert (first, rest) == ("a", ["b"])
    assert second not in ("", ".", "..")
    assert style == "matrix"  # whose empty list is a name without a value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NASTY = st.text(alphabet="./\\%25eEfF;?#@:&= \t\r\n\x00a", max_size=12)
STYLES = st.builds(Style, st.sampled_from(["simple", "label", "matrix", "json"]), st.booleans())
TEMPLATES = st.sampled_from(
    ["/a/{id}", "/a/{id}/b", "/{id}", "/a/x{id}y", "/a/{id}.json", "/{id}/{rest}", "/a/{id}{rest}"]
)


@given(TEMPLATES, JSON | NASTY, JSON | NASTY, STYLES)
def test_no_value_ever_leaves_the_template(template, one, other, style):
    try:
        path = filled(template, {"id": (one, style), "rest": (other, style)})
    except ToolArgumentError:
        return
    assert path.isascii()
    assert not set(path) & set("?#\\ \r\n\t")
    segments, expected = path.split("/"), template.split("/")
    assert len(segments) == len(expected)
    for segment, literal in zip(segments, expected, strict=True):
        assert "{" in literal or segment == literal
        decoded = segment
        for _ in range(4):
            assert decoded not in (".", "..")
            decoded = unquote(decoded)
        assert segment or not literal
    made = urlsplit(f"https://api.example/v1{path}")
    assert (made.netloc, made.query, made.fragment) == ("api.example", "", "")


PLACES = st.sampled_from(["query", "header", "cookie"])
QUERY_STYLES = st.sampled_from(["form", "spaceDelimited", "pipeDelimited", "deepObject", "simple"])


@functools.cache
def plan_of(place, style, explode, reserved):
    told = {"name": "p", "in": place, "style": style, "explode": explode, "allowReserved": reserved}
    source = OpenAPI({"openapi": "3.1.0", "paths": {"/a": {"get": {"operationId": "x", "parameters": [told]}}}})
    (tool,) = source.as_tools()
    (plan,) = [cell.cell_contents.plan for cell in tool.func.__closure__ if hasattr(cell.cell_contents, "plan")]
    return plan


@given(JSON | NASTY, PLACES, QUERY_STYLES, st.booleans(), st.booleans())
def test_no_value_of_any_place_ends_what_it_stands_in(value, place, style, explode, reserved):
    try:
        request = plan_of(place, style, explode, reserved).request({"p": value})
    except ToolArgumentError:
        return
    made = urlsplit(f"https://api.example{request.path}")
    assert (made.netloc, made.path, made.fragment) == ("api.example", "/a", "")
    assert request.path.isascii()
    assert request.path.isprintable()
    assert all(text.isascii() and text.isprintable() for text in request.headers.values())


# -- documents

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 30)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "aliases written out"),
        (MERGES, "aliases written out"),
        ("a: &a [*a]", "stands for nothing, or for what it is in"),
        ("a: *b", "stands for nothing"),
        ("[" * 100_000, "nested deeper"),
        ("{" * 100_000, "nested deeper|cannot be read"),
        ('{"a":' * 100_000, "nested deeper|cannot be read"),
        ("- " * (MAX_DOCUMENT_DEPTH + 1) + "x", "nested deeper"),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("? [1, 2]\n: 3\n", "a key is a list"),
        ("a: !!python/object/apply:os.system ['true']", "no OpenAPI document"),
        ("\xff\xfe", "no OpenAPI document"),
        ("", "no OpenAPI document"),
        ("just text", "no OpenAPI document"),
        ("[1, 2]", "no OpenAPI document"),
        ("a: 'unended", "cannot be read"),
        ("\t- x", "cannot be read"),
        ('{"openapi": NaN}', "no OpenAPI document|cannot be read"),
    ],
)
def test_a_hostile_text_is_refused_in_bounded_room(tmp_path, text, reason):
    path = tmp_path / "api.yaml"
    path.write_text(text, encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(OpenAPIError, match=reason):
            OpenAPI(path).as_tools()
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_bytes_that_are_no_text_a_folder_and_nothing_are_refused(tmp_path):
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name, reason in (("bytes.json", "not UTF-8"), (".", "is a folder"), ("none.json", "does not exist")):
        with pytest.raises(OpenAPIError, match=reason):
            OpenAPI(tmp_path / name).as_tools()


def test_a_circular_document_of_pythons_own_is_refused():
    document = {"openapi": "3.0.0", "paths": {}}
    document["paths"]["/a"] = document
    with pytest.raises(OpenAPIError, match="circular"):
        OpenAPI(document).as_tools()


# -- references to other files


def with_reference(reference):
    told = {"operationId": "x", "requestBody": {"$ref": reference}}
    return {"openapi": "3.0.0", "paths": {"/a": {"post": told}, "/b": {"get": {"operationId": "fine"}}}}


BODY = {"content": {"application/json": {"schema": {"type": "object", "properties": {"secret": {}}}}}}


@pytest.mark.parametrize(
    "reference",
    [
        "../outside.json",
        "../outside.json#/x",
        "sub/../../outside.json",
        "%2e%2e/outside.json",
        "..%2foutside.json",
        "link.json",
        "/etc/passwd",
        "\\etc\\passwd",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "http://127.0.0.1:9/x.json",
        "https://evil.example/x.json",
        "//evil.example/x.json",
        "ftp://evil.example/x",
        "data:application/json,{}",
        "missing.json",
        "folder",
        "device",
        "good.json#/no",
        "good.json#no",
        "bad.json",
    ],
)
def test_a_file_refers_to_no_place_but_files_beside_it(tmp_path, reference):
    folder = tmp_path / "api"
    (folder / "sub").mkdir(parents=True)
    (folder / "folder").mkdir()
    (tmp_path / "outside.json").write_text(json.dumps(BODY))
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "good.json").write_text(json.dumps(BODY))
    (folder / "bad.json").write_text("'")
    (folder / "api.json").write_text(json.dumps(with_reference(reference)))
    report = OpenAPI(folder / "api.json").report
    assert report.imported == ("fine",)
    assert [line.operation for line in report.skipped] == ["POST /a"]


@pytest.mark.parametrize(
    "reference", ["good.json", "./good.json#", "sub/good.json", "sub/../good.json", "good.yaml#/deep/0"]
)
def test_a_file_refers_to_files_beside_it(tmp_path, reference):
    (tmp_path / "sub").mkdir()
    for name in ("good.json", "sub/good.json"):
        (tmp_path / name).write_text(json.dumps(BODY))
    (tmp_path / "good.yaml").write_text(f"deep:\n  - {json.dumps(BODY)}\n")
    (tmp_path / "api.json").write_text(json.dumps(with_reference(reference)))
    tools = {tool.name: tool for tool in OpenAPI(tmp_path / "api.json").as_tools()}
    assert list(tools["x"].input_schema["properties"]) == ["secret"]


def test_references_inside_another_file_go_by_that_file(tmp_path):
    (tmp_path / "sub").mkdir()
    schema = {"type": "object", "properties": {"a": {"$ref": "#/parts/A"}, "b": {"$ref": "../b.json#/B"}}}
    media = {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/parts/S"}}}}
    parts = {"A": {"type": "string"}, "S": schema}
    (tmp_path / "sub" / "body.json").write_text(json.dumps({"content": media, "parts": parts}))
    (tmp_path / "b.json").write_text(json.dumps({"B": {"type": "integer"}}))
    (tmp_path / "api.json").write_text(json.dumps(with_reference("sub/body.json")))
    schema = OpenAPI(tmp_path / "api.json").as_tools()[0].input_schema
    assert schema["$defs"]["A"] == {"type": "string"}
    assert schema["$defs"]["B"] == {"type": "integer"}


def test_data_refers_to_no_files():
    report = OpenAPI(with_reference("good.json")).report
    assert "given as data has no place" in report.skipped[0].reason


@pytest.mark.parametrize(
    ("reference", "followed"),
    [
        ("good.json", True),
        ("/other/good.json", True),
        ("http://{netloc}/good.json", True),
        ("http://evil.example/good.json", False),
        ("//evil.example/good.json", False),
        ("https://{netloc}/good.json", False),
        ("http://user@{netloc}/good.json", False),
        ("http://{netloc}.evil.example/good.json", False),
        ("http://localhost:{port}/good.json", False),
        ("file:///etc/passwd", False),
        ("moved.json", False),
    ],
)
def test_an_address_refers_to_its_own_origin_only(echo, reference, followed):
    netloc = urlsplit(echo.url).netloc
    reference = reference.format(netloc=netloc, port=netloc.partition(":")[2])
    text = json.dumps(with_reference(reference)).encode()
    echo.answers["/docs/api.json"] = Response(text)
    for path in ("/docs/good.json", "/other/good.json", "/good.json"):
        echo.answers[path] = Response(json.dumps(BODY).encode())
    echo.answers["/docs/moved.json"] = RedirectResponse("http://evil.example/good.json")
    report = OpenAPI(f"{echo.url}/docs/api.json").report
    assert ("x" in report.imported) is followed
    assert len(report.imported) + len(report.skipped) == 2


@pytest.mark.parametrize("url", ["http://", "http://u:p@a.example/x", "http://a:0/", "http://[", "https:///x"])
def test_an_address_of_a_document_is_a_plain_one(url):
    with pytest.raises(OpenAPIError, match="is no address"):
        OpenAPI(url)


def test_the_developers_headers_go_along_for_a_document_only_where_the_api_is(echo):
    echo.answers["/api.json"] = Response(b'{"openapi": "3.0.0"}')
    headers = {"Authorization": "Bearer a-long-secret"}
    OpenAPI(f"{echo.url}/api.json", headers=headers, base_url=f"{echo.url}/v1").as_tools()
    assert echo.asked[-1]["headers"]["authorization"] == "Bearer a-long-secret"
    OpenAPI(f"{echo.url}/api.json", headers=headers, base_url="https://api.example").as_tools()
    assert "authorization" not in echo.asked[-1]["headers"]


def test_a_query_of_a_documents_address_is_shown_nowhere(echo):
    echo.answers["/api.json"] = Response(b"nothing", status_code=500)
    source = OpenAPI(f"{echo.url}/api.json?token=abcdef")
    with pytest.raises(OpenAPIError) as raised:
        source.as_tools()
    assert "answered HTTP 500" in str(raised.value)
    assert "abcdef" not in str(raised.value) + repr(source)


# -- servers


def served_by(root=None, operation=None):
    told = {"operationId": "x", **({"servers": [{"url": operation}]} if operation else {})}
    more = {"servers": [{"url": root}]} if root else {}
    return {"openapi": "3.0.0", "paths": {"/v": {"get": told}}, **more}


def test_only_servers_that_a_document_at_hand_begins_with_may_be_outside_the_public_network(echo):
    assert OpenAPI(served_by(root=echo.url)).as_tools()[0].call({})["path"] == "/v"
    hidden = OpenAPI(served_by(root="https://api.example", operation=echo.url))
    (result,) = call_tools([ToolCall("1", "x", {})], Toolset([hidden]))
    assert "GET /v: refusing to reach '127.0.0.1'" in result.text
    assert "names its host with base_url=" in result.text
    assert OpenAPI(served_by(operation=echo.url), base_url=echo.url).as_tools()[0].call({})["path"] == "/v"


@pytest.mark.parametrize(
    "server", ["http://localhost:{port}", "http://10.0.0.1", "http://169.254.169.254/latest", "http://[::1]"]
)
def test_a_document_from_elsewhere_names_no_host_outside_the_public_network(echo, server):
    server = server.format(port=urlsplit(echo.url).port)
    echo.answers["/api.json"] = Response(json.dumps(served_by(root=server)).encode())
    (result,) = call_tools([ToolCall("1", "x", {})], Toolset([OpenAPI(f"{echo.url}/api.json")]))
    assert "refusing to reach" in result.text
    assert [asked["path"] for asked in echo.asked] == ["/api.json"]
