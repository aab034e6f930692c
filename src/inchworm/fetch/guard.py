"""The address guard: which addresses and ports a crawl may connect to.

Pages choose where a crawler goes next, so without this any page could make it talk to the machine it runs
on, to the network around it, or to a cloud's metadata service. What is judged is the address about to be
dialled, never the spelling of a URL: names, redirects and odd number formats all end as an address.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

_REFUSED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, and the metadata services of clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)

# All public IPv6 is in here. Loopback, local and multicast addresses are not, nor are the ways of writing an
# IPv4 address as IPv6: mapped (::ffff:a.b.c.d), compatible (::a.b.c.d), NAT64 (64:ff9b::, 64:ff9b:1::).
_GLOBAL_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them, which carries an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries an IPv4 address too
        "3fff::/20",
    )
)

# The ports browsers refuse (the "bad ports" of the Fetch standard), because what listens there can be made to
# take an HTTP request for something else; and two databases that take orders line by line.
_BAD_PORTS = """
    0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115
    117 119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563
    587 601 636 989 990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667
    6668 6669 6679 6697 10080
"""
_REFUSED_PORTS = frozenset({*map(int, _BAD_PORTS.split()), 6379, 11211})


def is_public(address: str) -> bool:
    """Is this the address of a machine on the public internet? What is no address is not public."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        return ip.scope_id is None and ip in _GLOBAL_V6 and not any(ip in network for network in _REFUSED_V6)
    return not any(ip in network for network in _REFUSED_V4)


@dataclass(frozen=True, slots=True)
class Guard:
    """Says which connections may be made. `allowed` holds exactly the (host name, port) pairs of seeds that
    the local user typed; host names are lower case, IPv6 literals without brackets."""

    allow_private: bool = False
    allowed: frozenset[tuple[str, int]] = frozenset()

    def allows(self, hostname: str, port: int, address: str) -> bool:
        """May a request for this host and port be sent to this address?"""
        if self.allow_private or (hostname, port) in self.allowed:
            return True
        return port not in _REFUSED_PORTS and is_public(address)
