"""Which addresses and ports may be connected to."""

from __future__ import annotations

import pytest

from inchworm.fetch.guard import Guard, is_public

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "192.167.255.255",
    "193.0.0.1",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
    "2001:200::1",
]

S3 = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "fec0::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "not an address",
    "",
    "127.1",
    "0x7f.0.0.1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public(address):
    assert is_public(address)
    assert Guard().allows("example.org", 443, address)


@pytest.mark.parametrize("address", S3)
def test_s3_the_others_are_not(address):
    assert not is_public(address)
    assert not Guard().allows("example.org", 443, address)
    assert Guard(allow_private=True).allows("example.org", 443, address)


def test_exactly_the_typed_host_and_port_are_allowed():
    guard = Guard(allowed=frozenset({("localhost", 8000), ("::1", 80)}))
    assert guard.allows("localhost", 8000, "127.0.0.1")
    assert guard.allows("::1", 80, "::1")
    assert not guard.allows("localhost", 8001, "127.0.0.1")
    assert not guard.allows("127.0.0.1", 8000, "127.0.0.1")
    assert not guard.allows("other", 8000, "127.0.0.1")
    assert guard.allows("other", 8000, "8.8.8.8")


@pytest.mark.parametrize("port", [0, 22, 25, 6000, 6379, 11211])
def test_u16_ports_of_other_services_are_refused(port):
    assert not Guard().allows("example.org", port, "8.8.8.8")
    assert Guard(allow_private=True).allows("example.org", port, "8.8.8.8")
    assert Guard(allowed=frozenset({("example.org", port)})).allows("example.org", port, "8.8.8.8")


@pytest.mark.parametrize("port", [80, 443, 8000, 8080, 65535])
def test_ports_of_web_servers_are_not(port):
    assert Guard().allows("example.org", port, "8.8.8.8")
