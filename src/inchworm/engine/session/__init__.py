"""One session: which entry goes next, what it may use up, how its host is, until a limit, a pause or the end.

`loop` is the session itself and made of the rest, each with its own state: `window`, the part of the frontier in
memory; `dispatch`, who may go now; `grants`, what an entry may use up; `robots`, `hosts` and `outages`, what we know of
hosts; `flight`, what is under way; `commits`, what is on its way into the record; `totals`, `waiting` and `ending`,
when it is over; `heartbeat` and `wakeup`. Imports `ports`, `rules`, the ledger and the visit; no adapter. Start with
`loop`.

Lanes retire in order. Fetches run at once and end in any order. Visits are committed in the order of their places,
host by host, as a processor executes out of order and retires in order. A place, (seq of the finder, index of the
link), is decided by what is committed and by nothing else. So the record of one host does not depend on the number of
workers, on sessions, or on how long answers take (unless the site itself goes by cookies, load or the time of day).
The window looks up to 4,096 entries and 16 MB of answers ahead, so one slow page does not hold the others up. Limits
are granted in the same order, which is why they are exact.

A host is down, not its URLs. A request that could not even be sent, to a host that has answered in this crawl, says
nothing of its URL. Nothing of it is committed: the URL keeps its place and its tries, and the record is the one that
it would have been. The host is looked at now and then; other hosts go on; when nobody else is left the run pauses
(decision 0021).
"""
