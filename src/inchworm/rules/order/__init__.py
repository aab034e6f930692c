"""In which order the frontier is taken: as found, by a query (`focus`), by what likely changed (`freshness`).

Start with `order`, which also says how far the order of the record can be relied on.

`--query` and `--order freshness` choose each turn by rank among what got its place at least 32 turns before, so that
everything it chooses from is on record at any number of workers. With a query, every page that links to a URL has a
vote on its rank. Votes are kept with their visits and added up in `promise`, up to a seq that the run remembers. It
moves 32 turns at a time and is always the same for the same turn: forward while the run goes on, back after a crash
and with a checkpoint (`store.crawl.votes`, decision 0019).
"""
