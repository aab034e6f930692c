"""Servers that are told: Elasticsearch, OpenSearch, webhooks, mail and chat.

Start with `index` for search servers and with `notify` for messages.
"""
