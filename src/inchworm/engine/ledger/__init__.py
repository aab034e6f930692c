"""The record: how visits, and the URLs that they found, become rows, one transaction at a time.

Start with `commit`: it decides in order, its docstring has the theory, and its `Ledger` is made of the rest. `visits`
records one visit after the other, with `bodies` and `redirects`. `discovery` follows what was found: `entering` for
what is new to the run, `rejudging` for what is known, `bounds` for what belongs to it at all. `edits` is what people
change, `robots` what is asked for anew, and `sweep` ends a run. `transaction` is all or nothing, the room `draft` holds
what it will write, `rows` turns values into rows. Imports `ports` and `rules`; no adapter.

The queue is the visited set. One row per run and URL. Pending, done and refused are states of that row, so there is no
second structure to keep in step, and no way for a URL to be seen but lost. robots.txt and sitemap files are rows too.

Bodies before state. A commit appends to the WARC file, syncs it, and only then ends the transaction that points into
it. After a crash the file is cut back to the length that was committed. A file cut at the end of any record is a valid
file, because every record is a gzip member of its own.

A run builds on those before it. An incremental run walks like any other. For every URL it looks up the last version
that an earlier run has, asks with its validator, and takes its links from the store when the server says `not
modified`. What can be decided at once is decided when a visit is committed: new, modified, unchanged, deleted. When
nothing is pending any more, `sweep` enters the known pages that were not reached, and at last gives the verdicts that
need the whole run: stamps, redirects, what is unknown. Whom a run believes (decision 0014) is fixed before it begins,
so that its record does not depend on its workers. Which runs are earlier is a chain: each run knows the one it follows
on its line. A branch follows what its origin followed, so nothing on the line knows of it (decision 0025).
"""
