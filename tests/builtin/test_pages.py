from __future__ import annotations

import gzip
import subprocess
import sys
import time

import ddgs.engines
import pytest
from papers import pdf_of
from raw_server import RawServer, reply

from toolcrib import ToolCall, Toolset, builtin, call_tools, web_tools
from toolcrib.limits import MAX_HTTP_BYTES

WORDS = "The pump moves water from the well to the house, and it has done so for many years without any trouble. "
ARTICLE = f"""<!DOCTYPE html><html><head><title>Pumps</title><script>var secret = 1</script></head><body>
<nav><a href="/">Home</a> <a href="/login">Log in</a></nav>
<article><h1>Pumps</h1><p>{WORDS * 3}</p><p>{WORDS * 3} See <a href="https://example.com/wells">wells</a>.</p></article>
<footer>Imprint</footer></body></html>"""


@pytest.fixture
def server():
    with RawServer() as server:
        yield server


def page(body: bytes | str, kind: str, *headers: str, status: str = "200 OK") -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return reply(data, status, f"Content-Type: {kind}", *headers)


def fetch(server: RawServer, path: str = "/", timeout: float = 10, **arguments):
    tools = Toolset(web_tools(trusted=["127.0.0.1"], timeout=timeout))
    (result,) = call_tools([ToolCall("1", "fetch_page", {"url": f"{server.url}{path}", **arguments})], tools)
    return result


# -- what a page is


def test_an_article_comes_without_what_is_around_it(server):
    server.say(page(ARTICLE, "text/html; charset=utf-8"))
    text = fetch(server).text
    assert WORDS.strip() in text
    assert "Log in" not in text
    assert "secret" not in text
    assert "example.com" not in text


def test_links_are_told_when_they_are_wanted(server):
    server.say(page(ARTICLE, "text/html"))
    assert "https://example.com/wells" in fetch(server, links=True).text


def test_a_page_that_is_no_article_comes_whole(server):
    server.say(page("<html><body><h1>Hours</h1><ul><li>Mon 9-17</li><li>Tue 9-12</li></ul></body></html>", "text/html"))
    assert fetch(server).text == "# Hours\n\n- Mon 9-17\n- Tue 9-12"


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (b'{"a": [1, 2]}', "application/json", '{"a": [1, 2]}'),
        (b'{"type": "x"}', "application/problem+json; charset=utf-8", '{"type": "x"}'),
        ("Grüße".encode(), "text/plain", "Grüße"),
        ("Grüße".encode("latin-1"), "text/plain; charset=iso-8859-1", "Grüße"),
        ("Grüße".encode(), "text/plain; charset=nonsense", "Grüße"),
        (b"a,b\n1,2", "text/csv", "a,b\n1,2"),
        (b"<rss><item>x</item></rss>", "application/rss+xml", "<rss><item>x</item></rss>"),
        (b"no kind at all", "", "no kind at all"),
        (b"<p>no kind but <b>HTML</b>", "", "no kind but **HTML**"),
        ("<p>Привет, мир".encode("koi8-r"), "text/html; charset=koi8-r", "Привет, мир"),
        ('<meta charset="koi8-r"><p>Привет, мир'.encode("koi8-r"), "text/html", "Привет, мир"),
        (pdf_of("Page one", "Page two"), "application/pdf", "[page 1 of 2]\nPage one\n\n[page 2 of 2]\nPage two"),
        (pdf_of("Page one"), "application/octet-stream", "Page one"),
        (b"", "text/html", "The document has no text."),
    ],
)
def test_a_page_of_another_kind_comes_as_its_text(server, body, kind, text):
    server.say(page(body, kind))
    assert fetch(server).text == text


@pytest.mark.parametrize("kind", ["image/png", "application/zip", "video/mp4", "application/octet-stream"])
def test_what_is_not_text_is_refused_with_its_kind(server, kind):
    server.say(page(b"\x89PNG\0\0", kind))
    result = fetch(server)
    assert result.kind == "failed"
    assert kind in result.text


def test_a_long_page_is_read_in_parts(server):
    server.say(page("x" * 30_000 + "end", "text/plain"))
    assert "start=20000" in fetch(server).text
    assert fetch(server, start=20_000).text.endswith("xend")


def test_a_page_of_a_pdf_is_where_reading_begins(server):
    server.say(page(pdf_of("one", "two", "three"), "application/pdf"))
    assert fetch(server, page=3).text == "[page 3 of 3]\nthree"
    assert "only 3 pages" in fetch(server, page=4).text


# -- what a server does


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "500 Oops"])
def test_an_error_is_told_by_its_status(server, status):
    server.say(page("<h1>No</h1>", "text/html", status=status))
    result = fetch(server)
    assert result.kind == "failed"
    assert f"HTTP {status[:3]}" in result.text


def test_a_redirect_is_followed_within_what_may_be_reached(server):
    server.say(reply(b"", "302 Found", "Location: /there"), page("arrived", "text/plain"))
    assert fetch(server).text == "arrived"
    assert [asked.path for asked in server.asked] == ["/", "/there"]


@pytest.mark.parametrize(
    "target",
    [
        "http://localhost:{port}/",
        "http://[::1]:{port}/",
        "http://127.0.0.2:{port}/",
        "file:///etc/passwd",
        "http://169.254.169.254/",
    ],
)
def test_a_redirect_to_what_may_not_be_reached_is_refused(server, target):
    server.say(reply(b"", "302 Found", f"Location: {target.format(port=server.port)}"), page("secret", "text/plain"))
    result = fetch(server)
    assert result.kind == "failed"
    assert "refusing" in result.text
    assert len(server.asked) == 1


def test_redirects_without_end_are_given_up(server):
    server.say(reply(b"", "302 Found", "Location: /"))
    assert "redirected more than" in fetch(server).text


def test_a_body_that_grows_when_it_is_unpacked_is_cut(server):
    bomb = gzip.compress(b"x" * (MAX_HTTP_BYTES + 1_000_000))
    server.say(page(bomb, "text/plain", "Content-Encoding: gzip"))
    assert f"it has {MAX_HTTP_BYTES:,} characters" in fetch(server).text


def test_a_server_that_is_silent_is_given_up(server):
    server.say(server.mute)
    result = fetch(server, timeout=0.3)
    assert result.kind == "failed"
    assert "0.3 seconds" in result.text


@pytest.mark.parametrize("html", [b"<div>" * 200_000, b"<" * 1_000_000, b"<a href='" * 100_000, b"<!--" * 300_000])
def test_a_page_made_to_be_slow_is_read_in_time(server, html):
    server.say(page(html, "text/html"))
    started = time.process_time()
    fetch(server)
    assert time.process_time() - started < 10


# -- where it may go

REFUSED = [
    "file:///etc/passwd",
    "ftp://example.com/x",
    "gopher://example.com/",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "example.com",
    "//example.com/x",
    "https://",
    "https:///path",
    "http://user:password@example.com/",
    "http://user@example.com/",
    "http://example.com:99999/",
    "http://example.com:0/",
    "http://[::1/",
    "",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://x.localhost/",
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[fe80::1%25eth0]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://intranet/",
    "http://①②⑦.⓪.⓪.①/",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1?@example.com/",
    "http://exam\nple.com/",
]


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_is_none_or_not_public_is_refused(url):
    (result,) = call_tools([ToolCall("1", "fetch_page", {"url": url})], Toolset(builtin.web))
    assert result.kind == "failed", result.text
    assert any(
        word in result.text for word in ("refusing", "no address of the web", "user name", "could not be reached")
    )


def test_trust_in_one_host_is_not_trust_in_another(server):
    tools = Toolset(web_tools(trusted=["localhost"]))
    server.say(page("inside", "text/plain"))
    for host, kind in (("localhost", "ok"), ("127.0.0.1", "failed")):
        (result,) = call_tools([ToolCall("1", "fetch_page", {"url": f"http://{host}:{server.port}/"})], tools)
        assert result.kind == kind


# -- searching

RESULTS = """<html><body>
<div class="body"><h2>Pumps and wells</h2><a href="https://example.com/pumps">All about pumps</a></div>
<div class="body"><h2>More pumps</h2><a href="https://example.org/more">Even more about pumps</a></div></body></html>"""


@pytest.fixture
def engine(server, monkeypatch):
    """The search library, with one engine, which asks a server of this machine."""
    kind = ddgs.engines.ENGINES["text"]["duckduckgo"]
    monkeypatch.setitem(ddgs.engines.ENGINES, "text", {"duckduckgo": kind})
    monkeypatch.setattr(kind, "search_url", f"{server.url}/html/")
    return server


def search(**arguments):
    (result,) = call_tools([ToolCall("1", "search_web", arguments)], Toolset(web_tools()))
    return result


def test_a_search_gives_title_address_and_words_of_each_page(engine):
    engine.say(page(RESULTS, "text/html"))
    assert search(query="pumps").value == [
        {"title": "Pumps and wells", "url": "https://example.com/pumps", "text": "All about pumps"},
        {"title": "More pumps", "url": "https://example.org/more", "text": "Even more about pumps"},
    ]
    assert b"q=pumps" in engine.asked[0].body


def test_a_search_gives_no_more_than_is_wanted(engine):
    engine.say(page(RESULTS, "text/html"))
    assert len(search(query="pumps", limit=1).value) == 1


def test_a_search_that_finds_nothing_is_an_empty_list(engine):
    engine.say(page("<html><body>nothing</body></html>", "text/html"))
    assert search(query="pumps").value == []


def test_a_search_engine_that_cannot_be_reached_is_told(engine, monkeypatch):
    monkeypatch.setattr(ddgs.engines.ENGINES["text"]["duckduckgo"], "search_url", "http://127.0.0.1:1/")
    result = search(query="pumps")
    assert result.kind == "failed"
    assert "no search engine answered" in result.text


@pytest.mark.parametrize(
    ("module", "call"), [("trafilatura", "web[0].call({'url': URL})"), ("ddgs", "web[1].call({'query': 'x'})")]
)
def test_a_missing_package_is_told_with_its_extra(server, module, call):
    server.say(page(ARTICLE, "text/html"))
    code = (
        f"import sys; sys.modules[{module!r}] = None; URL = {server.url!r}\n"
        "from toolcrib import MissingExtraError, web_tools; web = web_tools(trusted=['127.0.0.1'])\n"
        f"try: {call}\n"
        "except MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "toolcrib[web]" in done.stdout
