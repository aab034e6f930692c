"""What follows the log of a crawl, each in a file of its own that can be deleted and made again at any time.

Start with `follower`; `log` is what all of them ask of the crawl, `search` is the full-text index, `fields` what was
taken out of pages, `index` what a search server was told, `frames` which blocks stand on most pages of a host.

`log_id` numbers visits over all runs and is never given again; going back appends an entry that says what is undone.
The search index remembers how far it has followed. Fields that are taken out of pages are kept for every visit, by
rules that may change whenever somebody wants; the record never depends on them. A search server outside is told by
`index`: what it is about to be told is written down first, and versions only grow, so that neither a crash nor a
rewind leaves it with something old. Notifications wait in an outbox of the home: promised when a session starts,
written down when its run is complete, claimed by whoever sends them, and sent until they have arrived.
"""
