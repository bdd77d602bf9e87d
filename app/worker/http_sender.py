"""Sends what webhooks are owed: one POST, to the address that was judged, never redirected.

A transport, not a client: there are no cookies, no proxies, no redirects and no second tries
to switch off. Each try has a connection of its own, for one that was made for another name
at the same address would not be checked for this one.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator, Sequence
from typing import Final

import httpx

from app.bridge.notifications import webhook_targets
from app.bridge.notifications.deliveries import Message
from app.bridge.notifications.webhook_targets import Resolve
from app.errors.inputs import InvalidInputError, WebhookTargetError
from app.runtime.deliveries import GONE, Result

_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)
_CLIENT: Final = range(400, 500)
_GONE: Final = 410
_BUSY: Final = frozenset({408, 429})
"""Answers by which an endpoint asks to be left alone, as one of its own faults does."""
_RETRY_AFTER_DIGITS: Final = 9
_CAUSES_MAX: Final = 10


class Sender:
    """Sends for one process."""

    def __init__(
        self,
        timeout_s: float,
        networks: Sequence[str] = (),
        *,
        trust: ssl.SSLContext | None = None,
        resolver: Resolve = webhook_targets.resolve,
    ) -> None:
        """Make one.

        Args:
            timeout_s: Seconds of one try, in all.
            networks: Private ones that may be reached.
            trust: Whose certificates count; None: whose the box trusts.
            resolver: Finds a host's addresses.
        """
        self._timeout_s = timeout_s
        self._networks = networks
        self._resolver = resolver
        self._trust = trust
        self._made: httpx.AsyncHTTPTransport | None = None

    def _transport(self) -> httpx.AsyncHTTPTransport:
        if self._made is None:
            # Made when first needed: to read all the box trusts takes 20 ms.
            self._made = httpx.AsyncHTTPTransport(
                verify=self._trust or ssl.create_default_context(),
                trust_env=False,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            )
        return self._made

    async def close(self) -> None:
        """Let every connection go."""
        if self._made is not None:
            await self._made.aclose()

    async def send(self, message: Message) -> Result:
        """Make one try.

        Returns:
            How it went: a class of failure and a status, never a word of the answer.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._send(message)
        except TimeoutError:
            return Result("timeout", is_connections=True)

    async def _send(self, message: Message) -> Result:
        try:
            url = webhook_targets.parse(message.url)
            host, port = webhook_targets.host_of(url), webhook_targets.port_of(url)
            addresses = await self._resolver(host, port)
            webhook_targets.require_allowed(url, addresses, self._networks)
        except WebhookTargetError:
            return Result("refused_address")
        except InvalidInputError:
            return Result("refused_url")
        except OSError:
            return Result("dns", is_connections=True)
        try:
            return await self._post(url, addresses, message)
        except httpx.TimeoutException:
            return Result("timeout", is_connections=True)
        except httpx.HTTPError as error:
            return Result(_class_of(error), is_connections=True)

    async def _post(self, url: httpx.URL, addresses: Sequence[str], sent: Message) -> Result:
        for left, address in zip(reversed(range(len(addresses))), addresses, strict=True):
            request = httpx.Request(
                "POST",
                url.copy_with(host=address),
                headers={"host": url.netloc.decode("ascii"), **sent.headers},
                content=sent.body,
                # The certificate must be the name's, not the address's.
                extensions={"sni_hostname": webhook_targets.host_of(url)},
            )
            try:
                answer = await self._transport().handle_async_request(request)
            except httpx.ConnectError as error:
                # Nothing was sent; but a name that proves false at one address is not tried on.
                if not left or _class_of(error) == "tls":
                    raise
                continue
            with contextlib.suppress(httpx.HTTPError):
                # The head says all; the body is left unread, with its connection.
                await answer.aclose()
            return _judge(answer)
        message = "unreachable: there is an address"
        raise AssertionError(message)


def _judge(answer: httpx.Response) -> Result:
    status = answer.status_code
    if status in _OK:
        return Result(None, status)
    if status == _GONE:
        return Result(GONE, status)
    if status in _REDIRECT:
        return Result("redirect", status)
    name = "status_4xx" if status in _CLIENT else "status_5xx"
    is_connections = status not in _CLIENT or status in _BUSY
    return Result(
        name, status, is_connections=is_connections, retry_after_ms=_retry_after_ms(answer)
    )


def _retry_after_ms(answer: httpx.Response) -> int:
    """What `Retry-After` asks for in seconds; a date is passed over, for clocks differ."""
    text = answer.headers.get("retry-after", "")
    if not text.isascii() or not text.isdigit() or len(text) > _RETRY_AFTER_DIGITS:
        return 0
    return int(text) * 1000


def _class_of(error: httpx.HTTPError) -> str:
    if any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
        return "tls"
    return "connect" if isinstance(error, httpx.ConnectError) else "protocol"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
