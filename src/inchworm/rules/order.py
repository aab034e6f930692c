"""How far the order of a run's record can be relied on."""

from __future__ import annotations


def word(disturbed: str, several_lanes: bool) -> str:
    """`exact`: the same whenever it is crawled again. `per host`: each host in its own order, hosts interleaved by
    time. `disturbed at n by kind`: a passing failure gave a URL a new place."""
    return disturbed or ("per host" if several_lanes else "exact")
