"""Orders to the owner of a crawl travel through its inbox as JSON."""

from __future__ import annotations

import json

import pytest

from inchworm.engine.own.orders import AddOrder, RetryOrder, add_order, retry_order


@pytest.mark.parametrize("order", [RetryOrder(None, None), RetryOrder("timeout", None), RetryOrder(None, "http://a/")])
def test_a_retry_arrives_as_it_was_sent(order: RetryOrder) -> None:
    assert retry_order(json.loads(json.dumps(order.to_json()))) == order


def test_an_added_url_arrives_as_it_was_sent() -> None:
    order = AddOrder("http://a.test/", "http://a.test/?", 3)
    assert add_order(json.loads(json.dumps(order.to_json()))) == order
