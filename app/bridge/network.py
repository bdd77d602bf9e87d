"""The network a client comes from: what throttle, gate and access log go by."""

import ipaddress
from collections.abc import Iterable
from typing import Final

V4_PREFIX: Final = 24
V6_PREFIX: Final = 64
LOCAL: Final = "local"
"""A client without an address, as one on the control socket."""


def network_of(address: str | None) -> str:
    """The /24 or /64 of an address; `local` for none or one that cannot be read."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return LOCAL
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    prefix = V4_PREFIX if isinstance(found, ipaddress.IPv4Address) else V6_PREFIX
    return str(ipaddress.ip_network((found, prefix), strict=False))


def client_address(peer: str | None, forwarded_for: str | None, trusted: Iterable[str]) -> str | None:
    """Whose address counts: the peer's, or behind trusted proxies the last untrusted hop's.

    Args:
        peer: The address of the connection.
        forwarded_for: `X-Forwarded-For`, as it came.
        trusted: Networks of proxies whose header is believed.
    """
    networks = [ipaddress.ip_network(text) for text in trusted]

    def is_trusted(address: str | None) -> bool:
        try:
            found = ipaddress.ip_address(address or "")
        except ValueError:
            return False
        return any(found.version == net.version and found in net for net in networks)

    if not is_trusted(peer) or not forwarded_for:
        return peer
    for hop in reversed([part.strip() for part in forwarded_for.split(",")]):
        if not is_trusted(hop):
            return hop
    return peer
