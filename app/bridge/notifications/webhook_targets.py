"""Where webhooks may lead: public hosts by TLS, and networks that the operator allows.

A name is resolved once, every address it has is judged, and the one that was judged is the
one that is connected to: an answer that changes in between changes nothing. The same judge
sits at a webhook's making, where it can say no in words, and at every try.

A name has one form, the one that is sent: ASCII, with international labels as they were
encoded. It is never decoded, for a resolver may encode it again by another rule (IDNA 2003
for 2008), and so ask for another name than the certificate's.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import idna

from app.errors.inputs import WebhookTargetError, WebhookUrlError
from app.settings import PORT_MAX

if TYPE_CHECKING:
    import httpx

URL_CHARS_MAX: Final = 2_048
_RESOLVE_S: Final = 5.0
_CHARACTERS: Final = re.compile(r"[!-\[\]-~]+")
"""Visible ASCII; not the backslash, which some read as a slash."""
_PORTS: Final = {"https": 443, "http": 80}
_LABEL: Final = re.compile(r"[a-z0-9_-]{1,63}")
"""Of names that there can be, and of IPv4 addresses however they are written."""
_NAME_CHARS_MAX: Final = 253
_ENCODED: Final = "xn--"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to every address, as text.

Raises OSError when there is none.
"""

_NEVER: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        # IANA IPv4 special-purpose addresses, and multicast.
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        # Of what IPv6 has that is global: protocol assignments, documentation, 6to4.
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
"""All else of IPv6 is loopback, mapped, translated, local, multicast or nobody's yet."""


def parse(url: str) -> "httpx.URL":
    """Read a webhook's url.

    Returns:
        It, in one form; its host is to be had by `host_of` alone.

    Raises:
        WebhookUrlError: Not https or http, no host or none that there can be, a user, a
            password, a fragment, characters that no url has, or too long.
    """
    import httpx  # noqa: PLC0415 - 0.15 s that no start should wait

    if len(url) > URL_CHARS_MAX or not _CHARACTERS.fullmatch(url):
        raise WebhookUrlError
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL:
        raise WebhookUrlError from None
    # Of the text itself: an empty user or fragment leaves no trace in what is read.
    authority = url.partition("://")[2].partition("/")[0]
    port = read.port if read.port is not None else _PORTS.get(read.scheme, 0)
    if read.scheme not in _PORTS or "@" in authority or "#" in url:
        raise WebhookUrlError
    if not 0 < port <= PORT_MAX or not _is_host(host_of(read)):
        raise WebhookUrlError
    return read


def host_of(url: "httpx.URL") -> str:
    """The name or address that is resolved, judged and named to the endpoint; no brackets."""
    return url.raw_host.decode("ascii")


def _is_host(host: str) -> bool:
    if ":" in host:  # of addresses alone, which were read with the url; a zone is this box's own
        return "%" not in host
    name = host.removesuffix(".")
    return len(name) <= _NAME_CHARS_MAX and all(map(_is_label, name.split(".")))


def _is_label(label: str) -> bool:
    """Whether a resolver takes it as it is, and an international one stands for anything."""
    if not _LABEL.fullmatch(label):
        return False
    try:
        return not label.startswith(_ENCODED) or bool(idna.ulabel(label))
    except UnicodeError:
        return False


def port_of(url: "httpx.URL") -> int:
    """The port that a url names or means."""
    return url.port or _PORTS[url.scheme]


async def resolve(host: str, port: int) -> list[str]:
    """Ask the box's resolver.

    Returns:
        Every address, as text, each once.

    Raises:
        OSError: There is none.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty or too long
        raise OSError from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def is_allowed(text: str, networks: Sequence[str], *, is_clear: bool) -> bool:
    """Whether an address may be connected to.

    Args:
        text: As the resolver gave it.
        networks: Those that the operator allows.
        is_clear: Whether the way is without TLS; then only those.

    Returns:
        False for whatever is not known to be public.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        address = address.ipv4_mapped or address
    if any(address in ipaddress.ip_network(network) for network in networks):
        return True
    if is_clear or any(address in network for network in _NEVER):
        return False
    return isinstance(address, ipaddress.IPv4Address) or address in _GLOBAL_V6


def require_allowed(url: "httpx.URL", addresses: Sequence[str], networks: Sequence[str]) -> None:
    """Refuse a host of which any address may not be reached.

    Raises:
        WebhookTargetError: One of them, or there is none.
    """
    is_clear = url.scheme == "http"
    if not addresses or not all(is_allowed(a, networks, is_clear=is_clear) for a in addresses):
        raise WebhookTargetError


async def require_target(text: str, networks: Sequence[str], resolver: Resolve = resolve) -> str:
    """Judge a url that a webhook is to have, as far as can be known now.

    Args:
        text: As it was given.
        networks: Those that the operator allows.
        resolver: Finds a host's addresses.

    Returns:
        It, in one form. A host that cannot be resolved now is judged at each try.

    Raises:
        WebhookUrlError: It is none that a webhook may have.
        WebhookTargetError: It leads where webhooks may not go.
    """
    url = parse(text)
    try:
        async with asyncio.timeout(_RESOLVE_S):
            addresses = await resolver(host_of(url), port_of(url))
    except OSError:  # a time-out is one
        if url.scheme == "http":
            raise WebhookTargetError from None
        return str(url)
    require_allowed(url, addresses, networks)
    return str(url)
