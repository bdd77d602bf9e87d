"""The network a client comes from: what throttle, gate and access log go by."""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
V4_PREFIX: Final = 24
V6_PREFIX: Final = 64
LOCAL: Final = "local"
"""A client without an address, as one on the control socket."""


@lru_cache(maxsize=1024)
def network_of(address: str | None) -> str:
    """The /24 or /64 of an address; `local` for none or one that cannot be read."""
    found = _read(address)
    if found is None:
        return LOCAL
    prefix = V4_PREFIX if isinstance(found, ipaddress.IPv4Address) else V6_PREFIX
    return str(ipaddress.ip_network(f"{found}/{prefix}", strict=False))


def client_address(
    peer: str | None, forwarded_for: str | None, trusted: Iterable[str]
) -> str | None:
    """Whose address counts: the peer's, or behind trusted proxies the last untrusted hop's.

    Args:
        peer: The address of the connection.
        forwarded_for: `X-Forwarded-For`, as it came.
        trusted: Networks of proxies whose header is believed.

    Returns:
        It; None when the connection has none, as on a socket of this box.
    """
    networks = [ipaddress.ip_network(text) for text in trusted]
    if not networks:
        return peer
    address = peer
    for hop in reversed((forwarded_for or "").split(",")):
        # A proxy's word counts for the hop before it, and only if it is an address.
        if not _is_in(address, networks) or _read(hop.strip()) is None:
            break
        address = hop.strip()
    return address


def _is_in(address: str | None, networks: list[Network]) -> bool:
    found = _read(address)
    return found is not None and any(
        found.version == network.version and found in network for network in networks
    )


def _read(address: str | None) -> Address | None:
    """An address without its scope, and as IPv4 where it is one in IPv6's clothes."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        return found.ipv4_mapped
    return found
