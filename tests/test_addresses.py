"""The network guard: what it refuses in every disguise, what it lets through beside that, and where it connects."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import textwrap
from ipaddress import ip_address

import anyio
import pytest
from raw_server import RawServer, reply

from toolcrib._addresses import NotPublicError, PublicOnly
from toolcrib._http import Http, HttpError
from toolcrib.limits import MAX_REDIRECTS

PUBLIC = "93.184.216.34"
PUBLIC_6 = "2606:2800:220:1:248:1893:25c8:1946"


def table(*addresses: str):
    """A resolver that gives these, and remembers what it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return list(addresses)

    resolve.asked = asked
    return resolve


@pytest.fixture
def server():
    with RawServer() as running:
        running.say({"reached": True})
        yield running


def http(**options) -> Http:
    return Http(**{"wanted_by": "a test", "timeout": 5.0, "trust_env": False, **options})


async def fetch(client: Http, url: str, headers=(), method="GET") -> bytes:
    async with client.request(method, url, dict(headers)) as received:
        return await received.read()


# -- what is refused

HOSTS = [  # as they may stand in an address
    "127.0.0.1",
    "127.255.255.254",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "app.localhost",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7F.0x0.0x0.0x1",
    "017700000001",
    "0177.1",
    "0177.0.0.1",
    "00000177.0.0.0x1",
    "0",
    "0.0.0.0",  # noqa: S104  # to be refused
    "10.0.0.1",
    "10.1",
    "167772161",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "192.168.257",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.7",
    "198.18.0.1",
    "198.19.255.255",
    "192.88.99.1",
    "168.63.129.16",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::8.8.8.8]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:169.254.169.254]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a00:1]",
    "[64:ff9b:1::8.8.8.8]",
    "[2002:7f00:1::]",
    "[2002:808:808::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:2::1]",
    "[2001:10::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[2606:4700::5efe:10.0.0.1]",
    "[2606:4700::200:5efe:127.0.0.1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[2606:4700::1111%25lo]",
    "[fec0::1]",
    "[ff02::1]",
    "[100::1]",
    "[4000::1]",
    "[5f00::1]",
    "\uff11\uff12\uff17.0.0.1",
    "\uff11\uff12\uff17\u3002\uff10\u3002\uff10\u3002\uff11",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "%31%32%37.0.0.1",
    "127.0.0.1%00.page.example",
    "134744072",
    "8.8.2056",
    "010.8.8.8",
    "0x8.8.8.8",
    "1.2.3.4.5",
    "256.256.256.256",
    "999999999999",
    "08.1",
    "metadata",
    "metadata.google.internal",
    "METADATA.GOOGLE.INTERNAL.",
    "metadata.goog",
    "instance-data",
    "host.docker.internal",
    "printer.local",
    "router.lan",
    "nas.home.arpa",
    "redis",
    "-a.example",
    "a" * 64 + ".example",
    "a..example",
]


@pytest.mark.anyio
@pytest.mark.parametrize("host", HOSTS)
async def test_a_host_that_is_not_public_is_refused_before_anything_is_resolved_or_sent(server, host):
    resolve = table(PUBLIC)
    with pytest.raises(HttpError) as raised:
        await fetch(http(resolve=resolve), f"http://{host}:{server.port}/")
    assert str(raised.value).startswith(("refusing to reach", "could not be reached (InvalidURL"))
    assert (server.asked, resolve.asked) == ([], [])


ADDRESSES = [  # as a resolver may give them
    "127.0.0.1",
    "0.0.0.0",  # noqa: S104  # as a name might resolve
    "10.20.30.40",
    "172.20.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.1.1",
    "198.18.0.1",
    "203.0.113.1",
    "224.0.0.251",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::192.168.0.1",
    "64:ff9b:1::1",
    "2002:a00:1::1",
    "2001::1",
    "2001:db8::2",
    "2606:4700::5efe:192.168.0.1",
    "fd12::1",
    "fe80::1%lo",
    "fe80::1%1",
    "ff05::2",
    "no address",
]


@pytest.mark.anyio
@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_name_whose_address_is_not_public_is_refused_and_the_address_not_told(server, address):
    with pytest.raises(HttpError, match=r"^refusing to reach 'page\.example': it has an? .* \(only hosts") as raised:
        await fetch(http(resolve=table(address)), f"http://page.example:{server.port}/")
    assert server.asked == []
    assert address not in str(raised.value) or address == "no address"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "an unspecified"),  # noqa: S104  # to be refused
        ("127.0.0.1", "a loopback"),
        ("10.0.0.1", "a private"),
        ("169.254.0.1", "a link-local"),
        ("100.64.0.1", "a shared"),
        ("192.0.2.1", "a documentation"),
        ("198.18.0.1", "a benchmarking"),
        ("224.0.0.1", "a multicast"),
        ("240.0.0.1", "a reserved"),
        ("168.63.129.16", "a cloud provider's internal"),
        ("::", "an unspecified"),
        ("::1", "a loopback"),
        ("fd00::1", "a private"),
        ("fec0::1", "a private"),
        ("fe80::1", "a link-local"),
        ("ff02::1", "a multicast"),
        ("64:ff9b:1::1", "a private"),
        ("64:ff9b::10.0.0.1", "a private"),
        ("::ffff:127.0.0.1", "a loopback"),
        ("2001:2::1", "a benchmarking"),
        ("2001::1", "a tunnelled"),
        ("2002::1", "a tunnelled"),
        ("2001:10::1", "a reserved"),
        ("2001:db8::1", "a documentation"),
        ("4000::1", "a reserved"),
    ],
)
async def test_the_refusal_says_what_kind_of_address_it_is(address, kind):
    with pytest.raises(NotPublicError, match=f"it has {kind} address"):
        await PublicOnly((), table(address)).addresses("page.example", 80)


@pytest.mark.anyio
async def test_the_machines_own_resolver_is_asked_when_no_other_is_given(server):
    assert await fetch(http(trusted=["localhost"]), f"http://localhost:{server.port}/") == b'{"reached": true}'
    with pytest.raises(NotPublicError, match="loopback"):
        # A name that is refused by its text as well, but which every machine can resolve.
        await _without_text_check().addresses("localhost", server.port)


def _without_text_check() -> PublicOnly:
    class Names(PublicOnly):
        def check(self, host: str) -> None:
            pass

    return Names(())


# -- what is let through

ACCEPTED = [
    ("8.8.8.8", []),
    ("1.1.1.1", []),
    ("9.255.255.255", []),
    ("11.0.0.0", []),
    ("100.63.255.255", []),
    ("100.128.0.0", []),
    ("126.255.255.255", []),
    ("128.0.0.1", []),
    ("169.253.255.255", []),
    ("172.15.255.255", []),
    ("172.32.0.0", []),
    ("192.0.1.1", []),
    ("192.167.255.255", []),
    ("192.169.0.0", []),
    ("198.17.255.255", []),
    ("198.20.0.0", []),
    ("203.0.114.1", []),
    ("223.255.255.255", []),
    ("8.8.8.8.", []),
    ("2606:4700:4700::1111", []),
    ("[2606:4700:4700::1111]", []),
    ("2606:4700::5efe:8.8.8.8", []),
    ("::ffff:8.8.8.8", []),
    ("64:ff9b::8.8.8.8", []),
    ("page.example", [PUBLIC]),
    ("PAGE.EXAMPLE.", [PUBLIC]),
    ("xn--bcher-kva.example", [PUBLIC, PUBLIC_6]),
    ("a_b.example", [PUBLIC]),
    ("localhost.example", [PUBLIC]),
    ("internal.example", [PUBLIC]),
    ("1.2.3.4.example", [PUBLIC]),
    ("127.0.0.1.example", [PUBLIC]),
    ("0x7f.example", [PUBLIC]),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("host", "found"), ACCEPTED)
async def test_what_is_public_is_let_through_as_the_address_that_was_checked(host, found):
    public = await PublicOnly((), table(*found)).addresses(host, 443)
    assert public == (found or [str(ip_address(host.strip("[]").rstrip(".")))])


@pytest.mark.anyio
async def test_of_several_addresses_the_public_ones_are_taken_in_their_order():
    mixed = table("10.0.0.1", PUBLIC_6, "127.0.0.1", PUBLIC, PUBLIC_6)
    assert await PublicOnly((), mixed).addresses("page.example", 443) == [PUBLIC_6, PUBLIC]
    with pytest.raises(NotPublicError, match="private"):
        await PublicOnly((), mixed).addresses("page.example", 443, strict=True)


@pytest.mark.anyio
async def test_a_name_without_addresses_cannot_be_reached():
    with pytest.raises(HttpError, match=r"could not be reached .*no address"):
        await fetch(http(resolve=table()), "http://page.example/")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("trusted", "host"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST.", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "127.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.0.1", "2130706433"),
    ],
)
async def test_a_host_that_the_developer_named_may_be_anywhere(server, trusted, host):
    for given in (trusted, [trusted]):
        assert await fetch(http(trusted=given), f"http://{host}:{server.port}/") == b'{"reached": true}'


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "a.127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"])
async def test_trust_in_one_host_is_none_in_another(server, host):
    with pytest.raises(HttpError, match="refusing"):
        await fetch(http(trusted=["127.0.0.1"]), f"http://{host}:{server.port}/")
    assert server.asked == []


@pytest.mark.parametrize("wrong", ["", "http://a.example", "a b", "a/b", 5, "[x"])
def test_a_trusted_host_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="trusted hosts are names or addresses"):
        http(trusted=[wrong])


# -- where connections go


@pytest.fixture
def internet(server, monkeypatch):
    """Every public address answers, on this machine; gives what was connected to."""
    connected: list[str] = []
    connect = anyio.connect_tcp

    async def reach(remote_host, remote_port, **options):
        connected.append(remote_host)
        if remote_host == "93.184.216.0":
            raise ConnectionRefusedError
        return await connect("127.0.0.1", server.port)

    monkeypatch.setattr(anyio, "connect_tcp", reach)
    return connected


@pytest.mark.anyio
async def test_the_checked_address_is_connected_to_and_the_name_resolved_once(server, internet):
    answers = [[PUBLIC], ["127.0.0.1"]]
    asked: list[str] = []

    async def changing(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers.pop(0)

    assert await fetch(http(resolve=changing), "http://page.example:8000/a") == b'{"reached": true}'
    assert (internet, asked) == ([PUBLIC], ["page.example"])
    assert server.asked[0].headers["host"] == "page.example:8000"


@pytest.mark.anyio
async def test_the_next_address_is_tried_when_one_does_not_answer(server, internet):
    assert await fetch(http(resolve=table("93.184.216.0", PUBLIC)), "http://page.example/") == b'{"reached": true}'
    assert internet == ["93.184.216.0", PUBLIC]


@pytest.mark.anyio
async def test_resolving_counts_against_the_deadline():
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(HttpError, match=r"did not answer within 0\.1 seconds"):
        await fetch(http(resolve=never, timeout=0.1), "http://page.example/")


# -- redirects


def moved(to: str, status: str = "302 Found") -> bytes:
    return reply(b"", status, f"Location: {to}")


@pytest.mark.anyio
async def test_a_redirect_to_a_host_that_is_not_public_is_refused_however_it_is_written(server, internet):
    for host in ("127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "metadata.google.internal", "localhost"):
        server.script.clear()
        server.say(moved(f"http://{host}:{server.port}/secret"), {"reached": True})
        with pytest.raises(HttpError, match="refusing to reach"):
            await fetch(http(resolve=table(PUBLIC), roam=True), "http://page.example/")
    assert {asked.path for asked in server.asked} == {"/"}


@pytest.mark.anyio
async def test_a_redirect_to_a_name_that_became_private_is_refused(server, internet):
    async def resolve(host: str, port: int) -> list[str]:
        return [PUBLIC] if host == "page.example" else ["10.0.0.1"]

    server.script.clear()
    server.say(moved("http://other.example/"), {"reached": True})
    with pytest.raises(HttpError, match=r"refusing to reach 'other\.example': it has a private address"):
        await fetch(http(resolve=resolve, roam=True), "http://page.example/")
    assert internet == [PUBLIC]


@pytest.mark.anyio
async def test_one_that_roams_leaves_the_callers_headers_behind_and_never_takes_them_up_again(server, internet):
    server.script.clear()
    server.say(moved("/b"), moved("http://other.example/c"), moved("http://page.example/d"), {"reached": True})
    headers = {"accept": "text/html", "authorization": "Bearer k", "cookie": "c", "x-api-key": "k", "user-agent": "t"}
    assert await fetch(http(resolve=table(PUBLIC), roam=True), "http://page.example/a", headers)
    assert [asked.path for asked in server.asked] == ["/a", "/b", "/c", "/d"]
    sent = [set(asked.headers) & set(headers) for asked in server.asked]
    assert sent == [set(headers), set(headers), {"accept", "user-agent"}, {"accept", "user-agent"}]


@pytest.mark.anyio
@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
@pytest.mark.parametrize(("method", "roam"), [("POST", True), ("GET", False)])
async def test_only_a_get_roams_and_only_where_it_may(server, internet, status, method, roam):
    server.script.clear()
    server.say(moved("http://other.example/", status), {"reached": True})
    with pytest.raises(HttpError, match="refusing redirect to different host"):
        await fetch(http(resolve=table(PUBLIC), roam=roam), "http://page.example/", method=method)
    assert len(server.asked) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("to", ["file:///etc/passwd", "gopher://page.example/", "ftp://page.example/", "javascript:0"])
async def test_one_that_roams_stays_with_http(server, internet, to):
    server.script.clear()
    server.say(moved(to))
    with pytest.raises(HttpError, match="refusing redirect to"):
        await fetch(http(resolve=table(PUBLIC), roam=True), "http://page.example/")


@pytest.mark.anyio
async def test_one_that_roams_in_a_circle_is_stopped(server, internet):
    server.script.clear()
    server.say(moved("http://other.example/"))
    with pytest.raises(HttpError, match=f"redirected more than {MAX_REDIRECTS} times"):
        await fetch(http(resolve=table(PUBLIC), roam=True), "http://page.example/")
    assert len(server.asked) == MAX_REDIRECTS + 1


# -- proxies


@pytest.fixture
def proxy(server, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, server.url)
    monkeypatch.setenv("no_proxy", "direct.example")
    return server


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "[::ffff:10.0.0.1]", "metadata.google.internal", "redis"])
async def test_a_proxy_is_not_asked_for_a_host_whose_text_is_not_public(proxy, host):
    with pytest.raises(HttpError, match="refusing to reach"):
        await fetch(http(trust_env=True), f"http://{host}/")
    assert proxy.asked == []


@pytest.mark.anyio
async def test_a_proxy_is_not_asked_for_a_name_of_which_one_address_is_not_public(proxy):
    with pytest.raises(HttpError, match="refusing to reach"):
        await fetch(http(trust_env=True, resolve=table(PUBLIC, "10.0.0.1")), "http://page.example/")
    assert proxy.asked == []


@pytest.mark.anyio
async def test_a_proxy_is_asked_for_what_is_public_trusted_or_known_to_it_alone(proxy):
    async def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    for options in ({"resolve": table(PUBLIC)}, {"resolve": unknown}, {"trusted": ["page.example"]}):
        assert await fetch(http(trust_env=True, **options), "http://page.example/") == b'{"reached": true}'
    assert [asked.path for asked in proxy.asked] == ["http://page.example/"] * 3


@pytest.mark.anyio
async def test_what_the_environment_excepts_from_its_proxy_is_guarded_as_any_other(proxy):
    with pytest.raises(HttpError, match="refusing to reach"):
        await fetch(http(trust_env=True, resolve=table("127.0.0.1")), f"http://direct.example:{proxy.port}/")
    assert proxy.asked == []


# -- a network of its own, with the machine's real resolver and TLS

SCRIPT = """
import asyncio, http.server, json, ssl, sys, threading
from toolcrib._http import Http, HttpError

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(self.headers["host"].encode())
    def log_message(self, *_): pass

folder = sys.argv[1]
named = []
server = http.server.ThreadingHTTPServer(("", 443), Page)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
context.sni_callback = lambda _, name, __: named.append(name)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()

async def said(url, **options):
    client = Http(wanted_by="a test", timeout=5.0, trust_env=True, **options)
    try:
        async with client.request("GET", url, {}) as received:
            return (await received.read()).decode()
    except HttpError as error:
        return str(error)

async def main():
    print(json.dumps({
        "public": await said("https://page.example/"),
        "wrong name": await said("https://other.example/"),
        "private": await said("https://inside.example/"),
        "literal": await said("https://10.0.0.1/"),
        "mixed": await said("https://mixed.example/"),
        "trusted": await said("https://inside.example/", trusted=["inside.example"]),
        "named": named,
    }))

asyncio.run(main())
"""
HOSTS_FILE = f"""127.0.0.1 localhost
{PUBLIC} page.example other.example mixed.example
10.0.0.1 inside.example mixed.example
"""


@pytest.fixture(scope="module")
def own_network(tmp_path_factory):
    """Run the script above where 93.184.216.34 is this machine; skip where that cannot be had."""
    folder = tmp_path_factory.mktemp("network")
    if not all(map(shutil.which, ("unshare", "ip", "openssl"))):
        pytest.skip("needs unshare, ip and openssl")
    (folder / "hosts").write_text(HOSTS_FILE)
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    names = "subjectAltName=DNS:page.example,DNS:inside.example,DNS:mixed.example"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    made += [
        "-keyout",
        f"{folder}/key.pem",
        "-out",
        f"{folder}/cert.pem",
        "-subj",
        "/CN=page.example",
        "-addext",
        names,
    ]
    subprocess.run(made, check=True, capture_output=True)
    inside = f"""
        ip link set lo up && ip addr add {PUBLIC}/32 dev lo && ip addr add 10.0.0.1/32 dev lo &&
        mount --bind {folder}/hosts /etc/hosts && exec env -i SSL_CERT_FILE={folder}/cert.pem \
        {sys.executable} {folder}/script.py {folder}"""
    ran = subprocess.run(
        [shutil.which("unshare"), "-rnm", "sh", "-c", inside], capture_output=True, text=True, timeout=60, check=False
    )
    if ran.returncode and "ermi" in ran.stderr:
        pytest.skip(f"this machine gives no network of one's own: {ran.stderr.strip()[-200:]}")
    assert not ran.returncode, ran.stderr
    return json.loads(ran.stdout)


def test_a_public_page_is_reached_over_tls_under_its_own_name(own_network):
    assert own_network["public"] == "page.example"
    assert "page.example" in own_network["named"]


def test_a_certificate_is_checked_against_the_name_and_not_the_address(own_network):
    assert "could not be reached" in own_network["wrong name"]
    assert "other.example" in own_network["wrong name"]


@pytest.mark.parametrize("kind", ["private", "literal"])
def test_what_really_resolves_to_a_private_address_is_refused(own_network, kind):
    assert own_network[kind].startswith("refusing to reach")


def test_what_really_resolves_to_both_is_reached_at_the_public_one_and_the_trusted_anywhere(own_network):
    assert own_network["mixed"] == "mixed.example"
    assert own_network["trusted"] == "inside.example"
