"""Calls of OpenAPI operations, against a real server that answers with what it understood."""

from __future__ import annotations

import base64
import logging

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from toolcrib import ExternalToolError, OpenAPI, Secret, ToolArgumentError, ToolCall, Toolset, call_tools
from toolcrib.limits import MAX_HTTP_BYTES
from toolcrib.serve.gateway import gateway_app

KEY = "k-very/secret+key"
RGB = {"R": 100, "G": 200}
BLUE = ["blue", "black"]


def source(echo, path, operation, *, method="get", **options):
    more = {"components": options.pop("components", {}), "security": options.pop("root_security", [])}
    told = {"operationId": "x", "responses": {}, **operation}
    document = {"openapi": "3.1.0", "info": {}, "paths": {path: {method: told}}, **more}
    return OpenAPI(document, **{"base_url": echo.url, **options})


def asked(echo, path, operation, arguments, **options):
    """What the server understood of one call."""
    (tool,) = source(echo, path, operation, **options).as_tools()
    return tool.call(arguments)


def answer(echo, path, operation, arguments, **options):
    """What a model is answered."""
    return call_tools([ToolCall("1", "x", arguments)], Toolset([source(echo, path, operation, **options)]))[0]


def parameter(location, schema=None, **told):
    return {"name": "color", "in": location, "required": location == "path", "schema": schema or {}, **told}


# -- parameters: the table of OpenAPI 3.1.1 ("Style Examples")


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        ("simple", False, "blue", "/blue"),
        ("simple", True, "blue", "/blue"),
        ("simple", False, BLUE, "/blue,black"),
        ("simple", True, BLUE, "/blue,black"),
        ("simple", False, RGB, "/R,100,G,200"),
        ("simple", True, RGB, "/R=100,G=200"),
        ("label", False, "blue", "/.blue"),
        ("label", False, BLUE, "/.blue,black"),
        ("label", True, BLUE, "/.blue.black"),
        ("label", False, RGB, "/.R,100,G,200"),
        ("label", True, RGB, "/.R=100.G=200"),
        ("matrix", False, "blue", "/;color=blue"),
        ("matrix", True, "blue", "/;color=blue"),
        ("matrix", False, BLUE, "/;color=blue,black"),
        ("matrix", True, BLUE, "/;color=blue;color=black"),
        ("matrix", False, RGB, "/;color=R,100,G,200"),
        ("matrix", True, RGB, "/;R=100;G=200"),
        (None, None, "a b", "/a%20b"),
        (None, None, "a/b", "/a%2Fb"),
        (None, None, "a?b#c&d", "/a%3Fb%23c%26d"),
        (None, None, ["a,b", "c"], "/a%2Cb,c"),
        (None, None, "über", "/%C3%BCber"),
        (None, None, 3, "/3"),
        (None, None, True, "/true"),
        ("form", None, "blue", "/blue"),
    ],
)
def test_a_path_parameter_is_written_in_its_style(echo, style, explode, value, written):
    told = parameter("path", **{k: v for k, v in (("style", style), ("explode", explode)) if v is not None})
    assert asked(echo, "/v/{color}", {"parameters": [told]}, {"color": value})["path"] == f"/v{written}"


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        (None, None, "blue", "color=blue"),
        (None, None, "", "color="),
        (None, None, BLUE, "color=blue&color=black"),
        (None, None, RGB, "R=100&G=200"),
        (None, None, None, ""),
        (None, None, [], ""),
        (None, None, "a b&c=d#e+f", "color=a%20b%26c%3Dd%23e%2Bf"),
        (None, None, {"a": {"b": 1}}, "a=%7B%22b%22%3A1%7D"),
        ("form", False, "blue", "color=blue"),
        ("form", False, BLUE, "color=blue,black"),
        ("form", False, ["a,b", "c"], "color=a%2Cb,c"),
        ("form", False, RGB, "color=R,100,G,200"),
        ("spaceDelimited", False, BLUE, "color=blue%20black"),
        ("spaceDelimited", False, RGB, "color=R%20100%20G%20200"),
        ("spaceDelimited", True, BLUE, "color=blue&color=black"),
        ("pipeDelimited", False, BLUE, "color=blue%7Cblack"),
        ("pipeDelimited", False, RGB, "color=R%7C100%7CG%7C200"),
        ("pipeDelimited", True, BLUE, "color=blue&color=black"),
        ("deepObject", True, RGB, "color[R]=100&color[G]=200"),
        ("deepObject", True, {"a": {"b": 1}, "c": [1, 2]}, "color[a][b]=1&color[c][]=1&color[c][]=2"),
        ("deepObject", True, ["a", "b"], "color[]=a&color[]=b"),
        ("deepObject", True, {"a&b": "c&d"}, "color[a%26b]=c%26d"),
    ],
)
def test_a_query_parameter_is_written_in_its_style(echo, style, explode, value, written):
    told = parameter("query", **{k: v for k, v in (("style", style), ("explode", explode)) if v is not None})
    assert asked(echo, "/v", {"parameters": [told]}, {"color": value})["query"] == written


def test_reserved_characters_are_left_as_they_are_where_that_cannot_end_the_value(echo):
    told = parameter("query", allowReserved=True)
    found = asked(echo, "/v", {"parameters": [told]}, {"color": "a/b?c:@!$'()*,;=[]&d#e+f g"})
    assert found["query"] == "color=a/b?c:@!$'()*,;=[]%26d%23e%2Bf%20g"
    assert found["pairs"] == [["color", "a/b?c:@!$'()*,;=[]&d#e+f g"]]


@pytest.mark.parametrize(
    ("explode", "value", "written"),
    [
        (False, "blue", "blue"),
        (False, BLUE, "blue,black"),
        (True, BLUE, "blue,black"),
        (False, RGB, "R,100,G,200"),
        (True, RGB, "R=100,G=200"),
        (False, 3, "3"),
    ],
)
def test_a_header_parameter_is_written_in_its_style(echo, explode, value, written):
    told = parameter("header", explode=explode)
    assert asked(echo, "/v", {"parameters": [told]}, {"color": value})["headers"]["color"] == written


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00", "ü"])
def test_a_header_takes_no_value_that_would_end_it(echo, value):
    result = answer(echo, "/v", {"parameters": [parameter("header")]}, {"color": value})
    assert result.kind == "invalid_arguments"
    assert not echo.asked


@pytest.mark.parametrize(
    ("explode", "value", "cookies"),
    [
        (True, "blue", {"color": "blue"}),
        (False, BLUE, {"color": "blue%2Cblack"}),
        (True, {"R": 100}, {"R": "100"}),
        (True, "a; evil=1", {"color": "a%3B%20evil%3D1".replace("%3D", "=")}),
    ],
)
def test_a_cookie_parameter_is_sent_as_a_cookie(echo, explode, value, cookies):
    told = parameter("cookie", explode=explode)
    assert asked(echo, "/v", {"parameters": [told]}, {"color": value})["cookies"] == cookies


def test_a_parameter_with_a_media_type_is_sent_as_json(echo):
    told = {"name": "filter", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}
    found = asked(echo, "/v", {"parameters": [told]}, {"filter": {"a": [1, "b&c"]}})
    assert found["pairs"] == [["filter", '{"a":[1,"b&c"]}']]


def test_several_parameters_and_a_query_in_the_path_come_together(echo):
    told = [parameter("query"), {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]
    found = asked(echo, "/v/{id}/x.json?fixed=1", {"parameters": told}, {"id": 7, "color": "blue"})
    assert (found["path"], found["query"]) == ("/v/7/x.json", "fixed=1&color=blue")


def test_one_name_in_many_places_is_many_arguments_each_sent_where_it_belongs(echo):
    told = [{"name": "id", "in": place, "required": place == "path"} for place in ("path", "query", "header", "cookie")]
    body = {"required": True, "content": {"application/json": {"schema": {"properties": {"id": {}, "body_id": {}}}}}}
    operation = {"parameters": told, "requestBody": body}
    (tool,) = source(echo, "/v/{id}", operation, method="post").as_tools()
    names = ["id", "query_id", "header_id", "cookie_id", "body_id_2", "body_id"]
    assert list(tool.input_schema["properties"]) == names
    arguments = {name: name for name in names}
    found = tool.call(arguments)
    assert found["path"] == "/v/id"
    assert found["pairs"] == [["id", "query_id"]]
    assert found["headers"]["id"] == "header_id"
    assert found["cookies"] == {"id": "cookie_id"}
    assert found["json"] == {"id": "body_id_2", "body_id": "body_id"}


@pytest.mark.parametrize("name", ["Host", "host", "Content-Length", "Transfer-Encoding", "Connection", "Cookie", "a b"])
def test_a_header_that_is_the_clients_own_is_no_parameter(echo, name):
    told = {"name": name, "in": "header", "schema": {"type": "string"}}
    api = source(echo, "/v", {"parameters": [told]})
    assert api.as_tools()[0].input_schema["properties"] == {}
    assert "the client's own" in api.report.notes[0].reason


def test_an_unknown_argument_is_refused_also_where_nothing_else_is_checked(echo):
    operation = {"parameters": [parameter("query")]}
    assert answer(echo, "/v", operation, {"colour": "x"}).kind == "invalid_arguments"
    result = answer(echo, "/v", operation, {"colour": "x"}, validate=False)
    assert (result.kind, "colour: not a parameter" in result.text) == ("invalid_arguments", True)
    assert not echo.asked


# -- bodies


def body(media, schema=None, *, required=True, **told):
    return {"requestBody": {"required": required, "content": {media: {"schema": schema or {}, **told}}}}


PET = {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array"}}, "required": ["name"]}


def test_an_object_body_is_told_by_its_properties(echo):
    found = asked(echo, "/v", body("application/json", PET), {"name": "x", "tags": [1]}, method="post")
    assert found["json"] == {"name": "x", "tags": [1]}
    assert found["headers"]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("media", "sent"),
    [
        ("application/json; charset=utf-8", "application/json; charset=utf-8"),
        ("application/merge-patch+json", "application/merge-patch+json"),
        ("*/*", "application/json"),
    ],
)
def test_json_goes_by_several_names(echo, media, sent):
    found = asked(echo, "/v", body(media, {"type": "array"}), {"body": [1]}, method="patch")
    assert found["json"] == [1]
    assert found["headers"]["content-type"] == sent


@pytest.mark.parametrize("value", [[{"op": "add"}], "text", 7, None, True, {"a": 1}])
def test_a_body_that_is_no_plain_object_is_one_argument(echo, value):
    assert asked(echo, "/v", body("application/json"), {"body": value}, method="post")["json"] == value


def test_a_body_that_may_be_left_out_is_not_sent_when_it_is(echo):
    found = asked(echo, "/v", body("application/json", PET, required=False), {}, method="post")
    assert (found["body"], "content-type" in found["headers"]) == ("", False)
    optional = {"type": "object", "properties": {"a": {}}}
    assert asked(echo, "/v", body("application/json", optional, required=False), {}, method="post")["body"] == ""
    assert asked(echo, "/v", body("application/json", optional), {}, method="post")["json"] == {}


def test_a_form_is_urlencoded_with_lists_repeated_and_objects_as_json_or_in_the_style_asked(echo):
    schema = {"type": "object", "properties": {name: {} for name in ("a", "b", "c", "d", "e", "f")}}
    encoding = {"d": {"style": "deepObject", "explode": True}, "e": {"contentType": "application/json"}}
    arguments = {"a": "x&y", "b": [1, 2], "c": {"k": 1}, "d": {"k": {"l": 1}}, "e": [1], "f": None}
    operation = body("application/x-www-form-urlencoded", schema, encoding=encoding)
    found = asked(echo, "/v", operation, arguments, method="post")["form"]
    assert found == [["a", "x&y"], ["b", "1"], ["b", "2"], ["c", '{"k":1}'], ["d[k][l]", "1"], ["e", "[1]"]]


def test_a_multipart_body_has_files_as_text_or_base64_and_other_parts(echo):
    binary = {"type": "string", "format": "binary", "description": "A picture."}
    schema = {
        "type": "object",
        "properties": {
            "picture": binary,
            "notes": {"contentMediaType": "text/plain"},
            "more": {"type": "array", "items": binary},
            "meta": {"type": "object"},
            "count": {"type": "integer"},
        },
    }
    operation = body("multipart/form-data", schema, encoding={"notes": {"contentType": "text/markdown"}})
    (tool,) = source(echo, "/v", operation, method="post").as_tools()
    shown = tool.input_schema["properties"]
    assert shown["picture"]["type"] == "string"
    assert shown["picture"]["description"].startswith("A picture. The text of a file, or its bytes as a data URL")
    data = base64.b64encode(b"\x89PNG\r\n--x").decode()
    found = tool.call(
        {
            "picture": f"data:image/png;name=a%22b.png;base64,{data}",
            "notes": "# Hi",
            "more": ["one", "data:;base64,dHdv"],
            "meta": {"a": 1},
            "count": 3,
        }
    )["parts"]
    assert [part["data"] for part in found] == ["\x89PNG\r\n--x", "# Hi", "one", "two", '{"a":1}', "3"]
    heads = [(p["headers"]["Content-Disposition"].partition("; ")[2], p["headers"].get("Content-Type")) for p in found]
    assert heads == [
        ('name="picture"; filename="a%22b.png"', "image/png"),
        ('name="notes"; filename="notes"', "text/markdown"),
        ('name="more"; filename="more"', "application/octet-stream"),
        ('name="more"; filename="more"', "application/octet-stream"),
        ('name="meta"', "application/json"),
        ('name="count"', None),
    ]


@pytest.mark.parametrize(
    ("media", "value", "sent", "content_type"),
    [
        ("application/octet-stream", "plain", "plain", "application/octet-stream"),
        ("application/octet-stream", "data:image/png;base64,iVBORw==", "\x89PNG", "application/octet-stream"),
        ("image/*", "data:image/png;base64,iVBORw==", "\x89PNG", "image/png"),
        ("text/plain", "hällo", "hällo".encode().decode("latin-1"), "text/plain"),
        ("application/xml", "<a/>", "<a/>", "application/xml"),
        ("text/plain", "data: not a URL", "data: not a URL", "text/plain"),
    ],
)
def test_other_bodies_are_text_or_bytes(echo, media, value, sent, content_type):
    found = asked(echo, "/v", body(media), {"body": value}, method="put")
    assert (found["body"], found["headers"]["content-type"]) == (sent, content_type)


def test_a_file_that_is_no_base64_is_refused(echo):
    result = answer(echo, "/v", body("application/pdf"), {"body": "data:a/b;base64,*"}, method="post")
    assert (result.kind, "not valid base64" in result.text) == ("invalid_arguments", True)


def test_of_several_kinds_of_bodies_json_is_sent_and_the_others_are_noted(echo):
    content = {media: {"schema": PET} for media in ("application/xml", "multipart/form-data", "application/json")}
    api = source(echo, "/v", {"requestBody": {"required": True, "content": content}}, method="post")
    assert api.as_tools()[0].call({"name": "x"})["json"] == {"name": "x"}
    assert (
        api.report.notes[0].reason
        == "its body is sent as application/json, not as application/xml, multipart/form-data"
    )


# -- credentials

SCHEMES = {
    "header_key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query_key": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie_key": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://x"},
    "mtls": {"type": "mutualTLS"},
}


@pytest.mark.parametrize(
    ("scheme", "place", "value"),
    [
        ("header_key", lambda found: found["headers"]["x-key"], KEY),
        ("query_key", lambda found: dict(found["pairs"])["key"], KEY),
        ("cookie_key", lambda found: found["cookies"]["sid"], KEY),
        ("basic", lambda found: found["headers"]["authorization"], "Basic dXNlcjp2ZXJ5LXNlY3JldA=="),
        ("bearer", lambda found: found["headers"]["authorization"], f"Bearer {KEY}"),
        ("oauth", lambda found: found["headers"]["authorization"], f"Bearer {KEY}"),
        ("oidc", lambda found: found["headers"]["authorization"], f"Bearer {KEY}"),
    ],
)
@pytest.mark.parametrize("how", ["text", "secret", "one for all", "function", "async function"])
def test_credentials_go_where_their_scheme_says_and_nobody_else_sees_them(echo, scheme, place, value, how):
    given = ("user", "very-secret") if scheme == "basic" else Secret(KEY) if how == "secret" else KEY

    async def later(name):
        return given if name == scheme else None

    ways = {"one for all": given, "function": lambda name: given if name == scheme else None, "async function": later}
    operation = {"security": [{scheme: []}]}
    api = source(echo, "/v", operation, components={"securitySchemes": SCHEMES}, auth=ways.get(how, {scheme: given}))
    (result,) = call_tools([ToolCall("1", "x", {})], Toolset([api]))
    assert result.ok
    assert place(echo.asked[-1]) == value
    assert KEY not in result.text
    assert "very-secret" not in result.text
    assert KEY not in repr(api) + repr(api.as_tools()) + str(api.as_tools()[0].definition())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_call_without_its_credentials_answers_which_are_missing_and_asks_nobody(echo, scheme):
    api = source(echo, "/v", {"security": [{scheme: []}]}, components={"securitySchemes": SCHEMES})
    (result,) = call_tools([ToolCall("1", "x", {})], Toolset([api]))
    assert result.kind == "failed"
    assert f"GET /v needs credentials that were not given: '{scheme}'" in result.text
    assert not echo.asked


def test_of_alternatives_the_first_with_credentials_is_taken_and_none_only_at_last(echo):
    operation = {"security": [{}, {"bearer": []}, {"header_key": [], "query_key": []}]}
    given = {"components": {"securitySchemes": SCHEMES}}
    found = asked(echo, "/v", operation, {}, auth={"header_key": "aaaa", "query_key": "bbbb"}, **given)
    assert (found["headers"]["x-key"], found["query"]) == ("aaaa", "key=bbbb")
    assert "authorization" not in found["headers"]
    assert "x-key" not in asked(echo, "/v", operation, {}, auth={"header_key": "aaaa"}, **given)["headers"]


def test_the_documents_security_holds_unless_the_operation_says_otherwise(echo):
    given = {"components": {"securitySchemes": SCHEMES}, "root_security": [{"bearer": []}]}
    assert answer(echo, "/v", {}, {}, **given).kind == "failed"
    assert answer(echo, "/v", {"security": []}, {}, **given).kind == "ok"
    asked(echo, "/v", {}, {}, auth=KEY, **given)
    assert echo.asked[-1]["headers"]["authorization"] == f"Bearer {KEY}"


def test_a_header_of_the_developers_answers_a_scheme_and_is_asked_of_no_model(echo):
    operation = {
        "security": [{"header_key": []}],
        "parameters": [{"name": "X-Tenant", "in": "header", "required": True}],
    }
    given = {"components": {"securitySchemes": SCHEMES}, "headers": {"X-Key": "abc", "x-tenant": "t1"}}
    api = source(echo, "/v", operation, **given)
    assert api.as_tools()[0].input_schema["properties"] == {}
    found = api.as_tools()[0].call({})
    assert (found["headers"]["x-key"], found["headers"]["x-tenant"]) == ("abc", "t1")


def test_a_parameter_that_is_a_credential_is_never_asked_of_a_model(echo):
    told = [{"name": "x-key", "in": "header", "required": True}, {"name": "key", "in": "query"}]
    api = source(echo, "/v", {"parameters": told}, components={"securitySchemes": SCHEMES})
    assert api.as_tools()[0].input_schema["properties"] == {}


def test_a_plain_token_is_a_bearer_where_the_document_declares_nothing(echo):
    asked(echo, "/v", {}, {}, auth=KEY)
    assert echo.asked[-1]["headers"]["authorization"] == f"Bearer {KEY}"


def test_keys_in_addresses_are_in_no_answer_no_error_and_no_log(echo, caplog):
    caplog.set_level(logging.DEBUG)
    given = {"components": {"securitySchemes": SCHEMES}, "auth": {"query_key": KEY}}
    operation = {"security": [{"query_key": []}]}
    echo.answers["/v"] = PlainTextResponse(f"no such key: {KEY} k-very%2Fsecret%2Bkey", 401)
    result = answer(echo, "/v", operation, {}, **given)
    assert result.kind == "failed"
    assert "HTTP 401: no such key: *** ***" in result.text
    gone = answer(echo, "/v", operation, {}, base_url="http://127.0.0.1:9", **given)
    assert "could not be reached" in gone.text
    for text in (gone.text, caplog.text):
        assert "very" not in text
    assert "HTTP Request: GET" in caplog.text


@pytest.mark.parametrize(
    "given", [{"auth": KEY}, {"headers": {"X-Auth-Token": KEY}}, {"headers": {"X-A": Secret(KEY)}}]
)
def test_credentials_do_not_go_over_plain_http_to_another_machine(given):
    document = {"openapi": "3.0.0", "paths": {"/v": {"get": {"operationId": "x", "responses": {}}}}}
    api = OpenAPI(document, base_url="http://api.example", **given)
    with pytest.raises(ExternalToolError, match=r"would go over plain http to api\.example"):
        api.as_tools()[0].call({})


def test_what_is_no_credential_is_refused_without_being_shown():
    for bad in (7, ["a"], {"a": 7}, ("a", "b", "c")):
        with pytest.raises(TypeError, match="auth"):
            OpenAPI({"openapi": "3.0.0"}, auth=bad)


def test_credentials_for_a_scheme_that_is_none_are_warned_of(echo):
    api = source(echo, "/v", {}, components={"securitySchemes": SCHEMES}, auth={"barer": KEY})
    with pytest.warns(UserWarning, match="auth names 'barer', but its security schemes are: header_key"):
        api.as_tools()


# -- answers


@pytest.mark.parametrize(
    ("response", "value"),
    [
        (JSONResponse({"a": [1]}), {"a": [1]}),
        (Response(b'{"a":1}', media_type="application/problem+json"), {"a": 1}),
        (Response(b"{nonsense", media_type="application/json"), "{nonsense"),
        (Response(status_code=204), None),
        (Response(b"", media_type="application/json"), None),
        (PlainTextResponse("hällo"), "hällo"),
        (Response("h\xe4llo".encode("latin-1"), media_type="text/plain"), "hällo"),
        (Response(b"<a/>", media_type="application/xml"), "<a/>"),
        (Response(b"<svg/>", media_type="image/svg+xml"), "<svg/>"),
        (Response(b"\x00\x01", media_type="application/zip"), b"\x00\x01"),
        (Response(b"\x89PNG", media_type="image/png"), {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}),
    ],
)
def test_an_answer_is_the_value_it_holds(echo, response, value):
    echo.answers["/v"] = response
    assert asked(echo, "/v", {}, {}) == value


def test_an_image_is_a_part_and_other_bytes_are_a_file(echo):
    echo.answers["/v"] = Response(b"\x89PNG", media_type="image/png")
    assert answer(echo, "/v", {}, {}).parts[0]["mimeType"] == "image/png"
    echo.answers["/v"] = Response(b"\x00\x01", media_type="application/zip")
    assert answer(echo, "/v", {}, {}).parts[0]["type"] == "resource"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 503])
def test_a_failure_is_told_with_its_status_and_what_the_api_said(echo, status):
    echo.answers["/v"] = JSONResponse({"error": "name is taken"}, status)
    result = answer(echo, "/v", {}, {})
    assert (result.kind, result.text) == (
        "failed",
        f'Tool \'x\' failed: GET /v answered HTTP {status}: {{"error":"name is taken"}}',
    )
    with pytest.raises(ExternalToolError) as raised:
        asked(echo, "/v", {}, {})
    assert (raised.value.status, raised.value.body) == (status, {"error": "name is taken"})


def test_a_failure_that_says_very_much_is_cut(echo):
    echo.answers["/v"] = PlainTextResponse("x" * 1_000_000, 500)
    assert len(answer(echo, "/v", {}, {}).text) < 2_200


def test_a_redirect_to_another_host_is_not_followed(echo):
    echo.answers["/v"] = RedirectResponse("http://evil.example/")
    assert "refusing redirect to different host" in answer(echo, "/v", {}, {}).text


def test_an_endless_answer_ends(echo):
    echo.answers["/v"] = Response(b"x" * (MAX_HTTP_BYTES + 1))
    assert "answered with more than" in answer(echo, "/v", {}, {}).text


def test_what_is_accepted_is_what_the_operation_promises(echo):
    content = {"text/csv": {}, "application/vnd.x+json": {}}
    asked(echo, "/v", {"responses": {"200": {"content": content}, "404": {"content": {"text/html": {}}}}}, {})
    assert echo.asked[-1]["headers"]["accept"] == "application/vnd.x+json, text/csv, */*;q=0.5"


# -- servers


@pytest.mark.parametrize(
    ("root", "path", "operation", "where"),
    [
        ("/a", None, None, "/a/v"),
        ("/a/", None, None, "/a/v"),
        ("/a", "/b", None, "/b/v"),
        ("/a", "/b", "/c", "/c/v"),
        ("/a/../d", None, None, "/d/v"),
        ("/{stage}/x", None, None, "/v1/x/v"),
    ],
)
def test_the_nearest_server_is_asked(echo, root, path, operation, where):
    def servers(tail):
        told = {"stage": {"default": "v1"}}
        return {} if tail is None else {"servers": [{"url": echo.url + tail, "variables": told}]}

    told = {"operationId": "x", "responses": {}, **servers(operation)}
    document = {"openapi": "3.0.0", "paths": {"/v": {"get": told, **servers(path)}}, **servers(root)}
    assert OpenAPI(document).as_tools()[0].call({})["path"] == where
    assert OpenAPI(document, base_url=f"{echo.url}/z/").as_tools()[0].call({})["path"] == "/z/v"


def test_variables_of_a_server_may_be_given(echo):
    variables = {"stage": {"default": "v1", "enum": ["v1", "v2"]}}
    servers = [{"url": f"{echo.url}/{{stage}}", "variables": variables}]
    document = {"openapi": "3.0.0", "paths": {"/v": {"get": {"operationId": "x"}}}, "servers": servers}
    assert OpenAPI(document, server_variables={"stage": "v2"}).as_tools()[0].call({})["path"] == "/v2/v"
    api = OpenAPI(document, server_variables={"stage": "v3"})
    with pytest.raises(ExternalToolError, match="'stage' may be v1, v2"):
        api.as_tools()[0].call({})


def test_servers_of_a_document_with_an_address_are_relative_to_it(echo):
    document = {"openapi": "3.0.0", "servers": [{"url": "../v2"}], "paths": {"/v": {"get": {"operationId": "x"}}}}
    echo.answers["/docs/api/openapi.json"] = JSONResponse(document)
    api = OpenAPI(f"{echo.url}/docs/api/openapi.json")
    assert api.origin == "openapi:openapi.json"
    assert api.as_tools()[0].call({})["path"] == "/docs/v2/v"
    document.pop("servers")
    echo.answers["/docs/api/openapi.json"] = JSONResponse(document)
    assert api.as_tools()[0].call({})["path"] == "/v"


@pytest.mark.parametrize(
    "url",
    [
        "/v1",
        "",
        "ftp://a.example",
        "http://",
        "http://u:p@a.example",
        "http://a?b=c",
        "http://{x}/",
        7,
        "http://[",
        "http://a\\b",
    ],
)
def test_without_a_usable_server_the_tool_is_listed_and_its_call_says_what_to_do(url):
    document = {"openapi": "3.0.0", "servers": [{"url": url}], "paths": {"/v": {"get": {"operationId": "x"}}}}
    api = OpenAPI(document)
    (tool,) = api.as_tools()
    with pytest.raises(ExternalToolError, match="pass base_url="):
        tool.call({})
    assert "pass base_url=" in api.report.notes[0].reason


@pytest.mark.parametrize("url", ["api.example", "ftp://a", "http://u:p@a.example", "http://a?b", ""])
def test_a_base_url_is_a_plain_address(url):
    with pytest.raises(ValueError, match="base_url must be"):
        OpenAPI({"openapi": "3.0.0"}, base_url=url)


def test_an_argument_that_a_path_needs_is_missed_also_where_nothing_else_is_checked(echo):
    (tool,) = source(echo, "/v/{color}", {}, validate=False).as_tools()
    with pytest.raises(ToolArgumentError, match="color: required, but missing"):
        tool.call({})


def test_a_toolset_served_as_a_gateway_reads_back_from_its_own_document(running):
    def convert(amount: float, currency: str = "EUR") -> str:
        """Convert an amount."""
        return f"{amount} {currency}"

    url = running(gateway_app([convert]))
    source = OpenAPI(f"{url}/openapi.json")
    tools = Toolset([source]).as_tools()
    (tool,) = [tool for tool in tools if tool.name.startswith("convert") or "convert" in (tool.original_name or "")]
    assert source.report.skipped == ()
    assert "2.5 EUR" in str(tool.call({"arguments": {"amount": 2.5}}))
