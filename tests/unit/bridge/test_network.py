"""Networks, and whose address counts."""

import pytest

from app.bridge.network import client_address, network_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "local"),
        ("", "local"),
        (None, "local"),
    ],
)
def test_an_address_counts_as_its_network(address: str | None, network: str) -> None:
    """A /24, a /64, or this box."""
    assert network_of(address) == network


_PROXIES = ("10.0.0.0/8", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "header", "address"),
    [
        pytest.param("192.0.2.1", None, "192.0.2.1", id="direct"),
        pytest.param("192.0.2.1", "198.51.100.1", "192.0.2.1", id="anyone can write a header"),
        pytest.param("10.0.0.1", None, "10.0.0.1", id="proxy without a header"),
        pytest.param("10.0.0.1", "198.51.100.1", "198.51.100.1", id="one hop"),
        pytest.param("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1", id="mapped proxy"),
        pytest.param("fd00::1", "203.0.113.9, 198.51.100.1", "198.51.100.1", id="last hop"),
        pytest.param("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1", id="two proxies"),
        pytest.param("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3", id="proxies alone"),
        pytest.param("10.0.0.1", "nonsense", "10.0.0.1", id="no address"),
        pytest.param("10.0.0.1", "198.51.100.1, x", "10.0.0.1", id="no address behind one"),
        pytest.param(None, "198.51.100.1", None, id="a socket of this box"),
    ],
)
def test_a_proxys_word_counts_for_the_hop_before_it(
    peer: str | None, header: str | None, address: str | None
) -> None:
    """And for no other; whoever comes straight is who they are."""
    assert client_address(peer, header, _PROXIES) == address
