"""The web as a crawler meets it: addresses, scope, robots.txt, sitemaps, cookies, how long to wait.

What is decided here needs no page, only URLs and the head of an answer. Imports other rooms of `rules` only for words.
Start with `url` (what a URL is to us), then `scope` (what becomes of each URL that is found).
"""
