"""Owning a crawl: the one process that may write to it, and what it finds there of earlier runs.

Start with `owner`: lock, token, reading mark; `recovery` is what it does first. `inbox` is what others ask of it,
`orders` the values that travel there; `earlier` and `bodies` are what the runs before left behind, and `rehash` brings
up to date what a run kept under another reader.

A fencing token. Whoever starts a session takes a new token, and every commit carries it. An owner that stood still,
lost its run and woke up finds its token too old: it can write neither rows nor into files that count, because archive
files belong to one token. A free lock is taken at once; a held one only after its owner's heartbeat stood still.

The reading mark. Before a page is read its number is put into eight bytes of shared memory, which outlive the process.
If the process dies there, the next session knows which page it was. After three deaths that page is set aside as
`reader_crashed`, and the crawl goes on.
"""
