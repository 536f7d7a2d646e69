"""Which hosts may be reached: those with a public address, and those that the developer named."""

from __future__ import annotations

import asyncio
import re
import socket
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

__all__ = ["NotPublicError", "PublicOnly", "Resolve"]

#: Gives the addresses that a name has, as text; raises OSError when it has none.
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


class NotPublicError(Exception):
    """A host that may not be reached. The text does not tell which address it has: who asked could map a network."""

    def __init__(self, host: str, problem: str) -> None:
        hint = "only hosts that the developer named may be outside the public network"
        super().__init__(f"to reach {host!r:.200}: {problem} ({hint})")


class PublicOnly:
    """Lets through hosts of the public network, and those that are trusted.

    Args:
        trusted: Host names and addresses that may be anywhere.
        resolve: Asked for the addresses of each name; by default this machine's resolver.
    """

    def __init__(self, trusted: Collection[str], resolve: Resolve | None = None) -> None:
        self._trusted = frozenset(map(_plain, trusted))
        self._resolve = resolve or _looked_up

    def trusts(self, host: str) -> bool:
        """Whether the developer named this host."""
        return _plain(host) in self._trusted

    def check(self, host: str) -> None:
        """Refuse a host whose text alone says that it is not public, or that it hides what it is.

        Raises:
            NotPublicError: It may not be reached.
        """
        if not self.trusts(host) and (problem := _problem_of_text(host)):
            raise NotPublicError(host, problem)

    async def addresses(self, host: str, port: int, *, strict: bool = False) -> list[str]:
        """Return the public addresses of a host that is not trusted, resolved once, to connect to as they are.

        Args:
            host: A name or an address.
            port: The port that will be connected to.
            strict: Whether one address that is not public spoils the others.

        Raises:
            NotPublicError: It may not be reached.
            OSError: It has no address.
        """
        self.check(host)
        literal = _literal(_plain(host))
        found = [str(literal)] if literal else list(dict.fromkeys(await self._resolve(host, port)))
        problems = {address: _problem_of(address) for address in found}
        public = [address for address, problem in problems.items() if not problem]
        if found and (not public or (strict and len(public) < len(found))):
            raise NotPublicError(host, f"it has {next(filter(None, problems.values()))}")
        if not found:
            raise OSError(f"no address is known for {host!r:.200}")
        return public


async def _looked_up(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


# -- what a host's text says


def _plain(host: str) -> str:
    """Return a host as it is compared: an address in its usual form, a name in lower case without a last dot."""
    name = unicodedata.normalize("NFKC", host).lower().strip("[]").removesuffix(".")
    literal = _literal(name)
    return str(literal) if literal else name


def _literal(name: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a text is, in any notation that some resolver reads, or None for a name."""
    try:
        return ip_address(name)
    except ValueError:
        return _loose_ipv4(name)


def _loose_ipv4(name: str) -> IPv4Address | None:
    """Read one to four numbers, each decimal, octal or hexadecimal, of which the last fills what is left."""
    parts = name.split(".")
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):  # noqa: PLR2004  # an IPv4 address has four bytes
        return None
    *heads, last = (int(part, _base(part)) for part in parts)
    room = 8 * (4 - len(heads))
    if any(head > 0xFF for head in heads) or last >= 1 << room:  # noqa: PLR2004  # a byte
        return None
    return IPv4Address(sum(head << 8 * (3 - place) for place, head in enumerate(heads)) + last)


_NUMBER = re.compile(r"0x[0-9a-f]{1,16}|0[0-7]{0,16}|[1-9][0-9]{0,16}")


def _base(number: str) -> int:
    return 16 if number.startswith("0x") else 8 if number.startswith("0") else 10


_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_ENDS_IN_A_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\Z")
_LOCAL_NAME = re.compile(r"(?:^|\.)(?:localhost|localdomain|local|internal|intranet|lan|home\.arpa|onion)\Z")
_METADATA_NAMES = frozenset({"metadata.goog", "instance-data.ec2.amazonaws.com", "metadata.packet.net"})


def _problem_of_text(host: str) -> str:
    name = unicodedata.normalize("NFKC", host).lower().strip("[]").removesuffix(".")
    if literal := _literal(name):
        usual = name == str(literal) or isinstance(literal, IPv6Address)
        return _problem_of(literal) or ("" if usual else "its address is written in a form that hides it")
    if not _NAME.fullmatch(name) or _ENDS_IN_A_NUMBER.search(name):
        return "that is no host name"
    if "." not in name or _LOCAL_NAME.search(name) or name in _METADATA_NAMES:
        return "that is a name of a local network"
    return ""


# -- what an address is

_NETWORKS = (
    ("0.0.0.0/8", "an unspecified"),
    ("127.0.0.0/8", "a loopback"),
    ("10.0.0.0/8", "a private"),
    ("172.16.0.0/12", "a private"),
    ("192.168.0.0/16", "a private"),
    ("169.254.0.0/16", "a link-local"),
    ("100.64.0.0/10", "a shared"),
    ("192.0.0.0/24", "a reserved"),
    ("192.0.2.0/24", "a documentation"),
    ("198.51.100.0/24", "a documentation"),
    ("203.0.113.0/24", "a documentation"),
    ("192.88.99.0/24", "a reserved"),
    ("198.18.0.0/15", "a benchmarking"),
    ("168.63.129.16/32", "a cloud provider's internal"),
    ("224.0.0.0/4", "a multicast"),
    ("240.0.0.0/4", "a reserved"),
)
_V4 = tuple((IPv4Network(network), kind) for network, kind in _NETWORKS)
_NETWORKS_6 = (
    ("::/128", "an unspecified"),
    ("::1/128", "a loopback"),
    ("fc00::/7", "a private"),
    ("fe80::/10", "a link-local"),
    ("fec0::/10", "a private"),
    ("ff00::/8", "a multicast"),
    ("64:ff9b:1::/48", "a private"),
    ("2001:2::/48", "a benchmarking"),
    ("2001::/32", "a tunnelled"),
    ("2001::/23", "a reserved"),
    ("2001:db8::/32", "a documentation"),
    ("3fff::/20", "a documentation"),
    ("2002::/16", "a tunnelled"),
)
_V6 = tuple((IPv6Network(network), kind) for network, kind in _NETWORKS_6)
_GLOBAL = IPv6Network("2000::/3")
# The IPv4 address in their last four bytes is what is connected to in the end.
_CARRIERS = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


def _problem_of(address: str | IPv4Address | IPv6Address) -> str:
    """Return what kind of address keeps it from being public, such as `a private address`, or nothing."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "an address that cannot be read"
    kind = _kind_4(parsed) if isinstance(parsed, IPv4Address) else _kind_6(parsed)
    return f"{kind} address" if kind else ""


def _kind_4(address: IPv4Address) -> str:
    return next((kind for network, kind in _V4 if address in network), "")


def _kind_6(address: IPv6Address) -> str:
    if address.scope_id is not None:
        return "a link-local"
    inner = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _CARRIERS):
        return _kind_4(inner)
    if kind := next((kind for network, kind in _V6 if address in network), ""):
        return kind
    if address not in _GLOBAL:
        return "a reserved"
    return _kind_4(inner) if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP else ""
