"""Where webhooks may lead, and where never."""

import asyncio
import ipaddress
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bridge.notifications import webhook_targets
from app.bridge.notifications.webhook_targets import Resolve, is_allowed, require_target
from app.db.runtime.rows import SubscriberRow
from app.errors.inputs import InvalidInputError, WebhookTargetError, WebhookUrlError
from app.runtime.subscriptions import connection_of

PUBLIC = ["8.8.8.8", "1.1.1.1", "192.0.1.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::5"]
PRIVATE = [
    "0.0.0.0",  # noqa: S104 - refused
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.8.9.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::8.8.8.8",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "no address",
    "",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_reached_by_tls_alone(address: str) -> None:
    """In clear it would need the operator's word."""
    assert is_allowed(address, (), is_clear=False)
    assert not is_allowed(address, (), is_clear=True)


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_never_reached(address: str) -> None:
    """However it is written."""
    assert not is_allowed(address, (), is_clear=False)
    assert not is_allowed(address, (), is_clear=True)


@pytest.mark.parametrize("is_clear", [False, True])
def test_the_operator_may_allow_networks(is_clear: bool) -> None:  # noqa: FBT001 - a parameter
    """And those alone."""
    networks = ("10.0.0.0/8", "fd00::/8")
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1"):
        assert is_allowed(address, networks, is_clear=is_clear)
    for address in ("192.168.0.1", "fe80::1", "::1"):
        assert not is_allowed(address, networks, is_clear=is_clear)


@given(address=st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_nothing_is_reached_that_the_standard_library_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    """Two lists, made apart, agree on what is dangerous."""
    if is_allowed(str(address), (), is_clear=False):
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "unix:///run/x",
        "https://",
        "https:///path",
        "https://:443/",
        "https://user@example.com/",
        "https://user:pw@example.com/",
        "https://@example.com/",
        "https://example.com/#part",
        "https://example.com/#",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:x/",
        "https://exa mple.com/",
        "https://example.com\\@evil.example/",
        "https://example.com/\r\nHost: x",
        "https://exämple.com/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://xn--a/",
        "https://xn--/",
        "https://XN--a/x",
        "https://hooks.xn--a.example:8443/",
        "https://xn--" + "9" * 59 + "/",
        "https://exa%6dple.com/",
        "https://%00/",
        "https://127.0.0.1%2f.example.com/",
        "https://a,b/",
        "https://a..b/",
        "https://./",
        "https://" + "x" * 64 + ".example/",
        "https://" + "x." * 130 + "example/",
        "https://example.com/" + "x" * 2048,
    ],
)
def test_what_is_no_url_for_a_webhook_is_refused(url: str) -> None:
    """Before anything is asked of anybody."""

    async def never(_host: str, _port: int) -> Sequence[str]:
        raise AssertionError

    with pytest.raises(WebhookUrlError):
        asyncio.run(require_target(url, (), never))


def _answering(*addresses: str) -> Resolve:
    async def resolver(_host: str, _port: int) -> Sequence[str]:
        if not addresses:
            raise OSError
        return addresses

    return resolver


@pytest.mark.parametrize(
    ("url", "addresses", "is_good"),
    [
        ("https://example.com/x?y=z", ["8.8.8.8"], True),
        ("https://EXAMPLE.com:8443/x", ["8.8.8.8", "2606:4700::1111"], True),
        ("https://example.com/x", [], True),
        ("https://example.com/x", ["8.8.8.8", "10.0.0.1"], False),
        ("https://example.com/x", ["::1"], False),
        ("http://example.com/x", ["8.8.8.8"], False),
        ("http://example.com/x", [], False),
        ("http://inside.example/x", ["10.9.0.1"], True),
        ("http://inside.example/x", ["10.9.0.1", "8.8.8.8"], False),
        ("https://inside.example/x", ["10.9.0.1", "8.8.8.8"], True),
    ],
)
def test_a_host_is_judged_by_every_address_it_has(
    url: str,
    addresses: list[str],
    is_good: bool,  # noqa: FBT001 - a parameter
) -> None:
    """One that nobody knows now is judged at each try instead, unless the way would be in clear."""
    judged = require_target(url, ("10.9.0.0/16",), _answering(*addresses))
    if is_good:
        assert asyncio.run(judged).startswith(url.split("/x", maxsplit=1)[0].lower())
    else:
        with pytest.raises(WebhookTargetError):
            asyncio.run(judged)


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "0"],
)
def test_this_box_is_refused_under_every_name(host: str) -> None:
    """As its own resolver understands them."""
    with pytest.raises(InvalidInputError):
        asyncio.run(require_target(f"https://{host}/", ()))


@pytest.mark.parametrize(
    ("url", "host", "kept"),
    [
        # IDNA 2003 would make `strasse.example` of what this stands for: another's name.
        ("https://XN--strae-oqa.example/x", "xn--strae-oqa.example", "xn--strae-oqa.example"),
        ("https://a.xn--strae-oqa.example/x", "a.xn--strae-oqa.example", "a.xn--strae-oqa.example"),
        ("https://my_app.example./x", "my_app.example.", "my_app.example."),
        ("https://[2606:4700::1111]/x", "2606:4700::1111", "[2606:4700::1111]"),
    ],
)
def test_a_name_has_one_form(url: str, host: str, kept: str) -> None:
    """What is resolved is what is sent, and what is kept; no name is decoded on the way."""
    asked: list[str] = []

    async def resolver(name: str, _port: int) -> Sequence[str]:
        asked.append(name)
        return ["8.8.8.8"]

    found = asyncio.run(require_target(url, (), resolver))
    assert found == f"https://{kept}/x"
    assert asked == [host]
    assert webhook_targets.host_of(webhook_targets.parse(found)) == host


_LABEL = st.text("ab19-_%.@:[]!~xn\\", max_size=12) | st.text(st.characters(max_codepoint=0x17F))
_HOSTS = st.lists(st.tuples(st.sampled_from(["", "xn--", "XN--"]), _LABEL), min_size=1, max_size=3)


@given(host=_HOSTS, port=st.sampled_from(["", ":", ":1", ":65536", ":x"]), rest=st.text(max_size=8))
def test_every_text_is_read_or_refused(host: list[tuple[str, str]], port: str, rest: str) -> None:
    """In one way; what is read names one host to the resolver, the endpoint and the breaker."""
    text = f"https://{'.'.join(start + end for start, end in host)}{port}/{rest}"
    try:
        url = webhook_targets.parse(text)
    except WebhookUrlError:
        return
    name = webhook_targets.host_of(url)
    assert webhook_targets.parse(str(url)) == url
    assert url.netloc.decode() in {name, f"[{name}]"} | {
        f"{each}:{webhook_targets.port_of(url)}" for each in (name, f"[{name}]")
    }
    connection = connection_of(SubscriberRow("id", None, str(url)))
    assert connection.removeprefix("https://").rpartition(":")[0].strip("[]") == name


def test_a_name_that_cannot_be_is_unknown() -> None:
    """A label too long is an answer of no address, not a fault."""
    with pytest.raises(OSError, match=r".*"):
        asyncio.run(webhook_targets.resolve("x" * 70 + ".example", 443))
    with pytest.raises(WebhookUrlError):
        webhook_targets.parse("https://" + "x" * 2100)
