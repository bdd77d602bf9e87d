"""One try over real sockets: what counts as taken, how a failure is named, who is never reached."""

import asyncio
import ssl
from collections.abc import Iterator, Sequence

import pytest
import trustme

from app.bridge.notifications.deliveries import Message
from app.bridge.notifications.webhook_targets import Resolve, resolve
from app.runtime.deliveries import Result
from app.worker.http_sender import Sender
from tests.support.endpoint import HOST, NETWORKS, Endpoint, endpoint

BODY = b'{"type":"memory_doc.updated"}'
PATIENCE_S = 10.0
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody, and is made quickly."""

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def far() -> Iterator[Endpoint]:
    """An endpoint in clear."""
    with endpoint() as found:
        yield found


def send(  # noqa: PLR0913 - each is one thing that may be otherwise
    url: str,
    networks: Sequence[str] = NETWORKS,
    *,
    trust: ssl.SSLContext | None = NOBODY,
    resolver: Resolve = resolve,
    times: int = 1,
    patience_s: float = PATIENCE_S,
) -> Result:
    """Try, and say how the last time went."""

    async def run() -> Result:
        sender = Sender(patience_s, networks, trust=trust, resolver=resolver)
        message = Message(url, {"webhook-id": "m-1", "content-type": "application/json"}, BODY)
        results = [await sender.send(message) for _ in range(times)]
        await sender.close()
        return results[-1]

    return asyncio.run(run())


def named(*addresses: str) -> Resolve:
    """A resolver that knows one answer."""

    async def resolver(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return resolver


def test_what_is_sent_arrives_whole(far: Endpoint) -> None:
    """As one POST to the url's path and host, and any status of success will do."""
    for status in (200, 202, 204, 299):
        far.answer = lambda _received, status=status: status  # type: ignore[misc] # one for each
        assert send(far.url("/a/b?c=d")) == Result(None, status)
    for received in far.received:
        assert received.path == "/a/b?c=d"
        assert received.body == BODY
        assert received.headers["host"] == f"{HOST}:{far.port}"
        assert received.headers["webhook-id"] == "m-1"


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (301, Result("redirect", 301)),
        (307, Result("redirect", 307)),
        (400, Result("status_4xx", 400)),
        (404, Result("status_4xx", 404)),
        (408, Result("status_4xx", 408, is_connections=True)),
        (410, Result("gone", 410)),
        (429, Result("status_4xx", 429, is_connections=True)),
        (500, Result("status_5xx", 500, is_connections=True)),
        (503, Result("status_5xx", 503, is_connections=True)),
    ],
)
def test_every_other_status_is_a_failure_with_a_name(
    far: Endpoint, status: int, result: Result
) -> None:
    """Whose it is, the message's or the connection's, is told with it."""
    far.answer = lambda _received: status
    assert send(far.url()) == result


def test_a_redirect_is_not_followed(far: Endpoint) -> None:
    """Wherever it leads."""
    far.answer = lambda _received: 302
    far.headers["location"] = far.url("/elsewhere")
    assert send(far.url()).failure == "redirect"
    assert [each.path for each in far.received] == ["/hook"]


@pytest.mark.parametrize(
    ("value", "ms"),
    [("7", 7000), ("0", 0), ("-1", 0), ("1e9", 0), ("soon", 0), ("٣", 0), ("9" * 30, 0)],
)
def test_an_endpoint_may_ask_to_be_left_alone(far: Endpoint, value: str, ms: int) -> None:
    """In whole seconds; what else it says is passed over."""
    far.answer = lambda _received: 503
    far.headers["retry-after"] = value.encode().decode("latin-1")
    assert send(far.url()).retry_after_ms == ms


@pytest.mark.parametrize(
    ("how", "failure"),
    [("hang", "timeout"), ("close", "protocol"), ("half", "protocol"), ("garbage", "protocol")],
)
def test_an_endpoint_that_does_not_answer_is_given_up(
    far: Endpoint, how: str, failure: str
) -> None:
    """In time, and by name."""
    far.answer = lambda _received: how
    patience_s = 0.2 if how == "hang" else PATIENCE_S
    found = send(far.url(), patience_s=patience_s)
    assert found == Result(failure, is_connections=True)


def test_an_endless_answer_is_not_read(far: Endpoint) -> None:
    """Its status says all: no more of it is taken than the sockets hold."""
    far.answer = lambda _received: "huge"
    assert send(far.url()) == Result(None, 200)
    assert far.sent_bytes < 16 * 1024 * 1024


def test_nobody_there_is_a_failure_to_connect(far: Endpoint) -> None:
    """At a port where nobody listens."""
    with endpoint() as gone:
        url = gone.url()
    assert send(url) == Result("connect", is_connections=True)
    assert not far.received


def test_a_name_that_nobody_knows_is_told(far: Endpoint) -> None:
    """As a failure of the connection."""

    async def unknown(_host: str, _port: int) -> Sequence[str]:
        raise OSError

    assert send(far.url(), resolver=unknown) == Result("dns", is_connections=True)


@pytest.mark.parametrize("networks", [(), ("10.0.0.0/8",)])
def test_an_address_that_is_not_allowed_is_never_connected_to(
    far: Endpoint, networks: tuple[str, ...]
) -> None:
    """Judged at each try, whatever was true when the webhook was made."""
    assert send(far.url(), networks) == Result("refused_address")
    assert send(far.url(host="localhost"), networks) == Result("refused_address")
    for url in (f"https://{HOST}:{far.port}/#x", "https://xn--a/"):
        assert send(url, networks) == Result("refused_url")
    assert not far.received


def test_the_address_that_was_judged_is_the_one_connected_to(far: Endpoint) -> None:
    """The name is asked for once, and it stays the host that is named to the endpoint."""
    asked: list[str] = []

    async def changing(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return [HOST] if len(asked) == 1 else ["10.0.0.1"]

    url = f"http://far.example:{far.port}/hook"
    assert send(url, resolver=changing) == Result(None, 204)
    assert asked == ["far.example"]
    assert far.received[0].headers["host"] == f"far.example:{far.port}"


def test_an_international_name_is_the_same_to_everybody(authority: trustme.CA) -> None:
    """Resolver, endpoint, and whoever checks the certificate are told the encoded name."""
    asked: list[str] = []
    named_to: list[str | None] = []

    async def resolver(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return [HOST]

    served, name = _served(authority, "xn--strae-oqa.example"), "xn--strae-oqa.example"
    served.sni_callback = lambda _socket, asked_for, _context: named_to.append(asked_for)
    with endpoint(served) as far:
        url = far.url(host=name)
        assert send(url, trust=_trusting(authority), resolver=resolver) == Result(None, 204)
        assert far.received[0].headers["host"] == f"{name}:{far.port}"
    assert asked == named_to == [name]


def test_a_dead_address_is_passed_over_for_a_live_one(far: Endpoint) -> None:
    """Nothing was sent to it."""
    resolver = named("127.0.0.9", HOST)
    url = f"http://far.example:{far.port}/hook"
    assert send(url, resolver=resolver) == Result(None, 204)
    assert len(far.received) == 1


def test_nothing_is_kept_from_one_try_to_the_next(far: Endpoint) -> None:
    """No cookie, and no connection."""
    far.headers["set-cookie"] = "a=b"
    assert send(far.url(), times=3) == Result(None, 204)
    assert all("cookie" not in each.headers for each in far.received)


def test_no_proxy_is_taken_from_the_environment(
    far: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the variables say."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(far.url()) == Result(None, 204)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Whose certificates the tests' box trusts."""
    return trustme.CA()


def _served(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.mark.parametrize(
    ("name", "host", "result"),
    [
        ("far.example", "far.example", Result(None, 204)),
        ("127.0.0.1", "127.0.0.1", Result(None, 204)),
        ("other.example", "far.example", Result("tls", is_connections=True)),
        # The certificate of the address is not the name's.
        ("127.0.0.1", "far.example", Result("tls", is_connections=True)),
    ],
)
def test_a_certificate_must_be_the_hosts(
    authority: trustme.CA, name: str, host: str, result: Result
) -> None:
    """By its name, though the connection goes to an address."""
    with endpoint(_served(authority, name)) as far:
        url = far.url(host=host)
        found = send(url, trust=_trusting(authority), resolver=named(HOST))
        assert found == result
        assert len(far.received) == (result.failure is None)


@pytest.mark.parametrize("trusts_another", [False, True])
def test_a_certificate_of_an_unknown_authority_is_refused(
    authority: trustme.CA,
    trusts_another: bool,  # noqa: FBT001 - a parameter
) -> None:
    """By what the box trusts, and by what trusts somebody else."""
    trust = _trusting(trustme.CA()) if trusts_another else None
    with endpoint(_served(authority, "far.example")) as far:
        url = far.url(host="far.example")
        found = send(url, trust=trust, resolver=named(HOST))
        assert found == Result("tls", is_connections=True)
        assert not far.received


def test_two_names_at_one_address_are_checked_each(authority: trustme.CA) -> None:
    """A connection that was made for one of them is not used for the other."""

    async def run(far: Endpoint) -> list[str | None]:
        sender = Sender(PATIENCE_S, NETWORKS, trust=_trusting(authority), resolver=named(HOST))
        found = []
        for host in ("far.example", "other.example", "far.example"):
            message = Message(far.url(host=host), {"webhook-id": "m"}, BODY)
            found.append((await sender.send(message)).failure)
        await sender.close()
        return found

    with endpoint(_served(authority, "far.example")) as far:
        assert asyncio.run(run(far)) == [None, "tls", None]
