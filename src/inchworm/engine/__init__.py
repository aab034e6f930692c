"""What crawls: the life of one URL, the session around it, the record it goes into, and who owns it.

Start with `visit`. Rooms: `session` (which entry goes next, until a limit, a pause or the end), `ledger` (how visits
become the record), `own` (the one process that may write). `ranking` is there for runs with a query, and all others do
without it. A session is opened, worked and closed: `work`, with `opening` and `closing`. These, `fetching`, `single`,
`stored` and `own` name adapters, everything else speaks to `ports`. Each part can be loaded by itself: whoever only
looks does not wait for asyncio, curl and the HTML parser.

Pause = crash = budget. A session ends by stopping. Whatever was not committed was never marked anything, so it is
simply still pending. Resuming reads the first pending rows and goes on; there is no repair and no second path.

One thread works, one waits. The event loop fetches, reads and decides. Whatever waits for a lock or for the disk (the
beginning and the end of a commit, and all of one that is large) is done by a second thread. They do not work side by
side: only one of them can run Python, and handing it to and fro costs more than it brings (decision 0012).
"""
