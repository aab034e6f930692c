"""crawl.db: one crawl, its runs, pages and frontier.

`place` is where a crawl lies, `store` an open one with an object for each noun that a session works with: `owner` (who
may write), `commit`, `runs`, `frontier`, `visits`, `hosts`, `earlier`, `evidence`, `votes`. `joins` has what many of their
statements say alike. `history` makes checkpoints and goes back to them, and `read` is for people. Start with `store`, then
the newest file in `migrations`.

A checkpoint is a sequence number. Visits are only ever added, and every row knows the seq at which it was found and
settled; a row that changes in place leaves its old values in `undo`. Making a checkpoint writes one small row. Going
back to it is one transaction that touches only what came later: what was found later is deleted, what was changed is
restored, what was settled is pending again, and an entry in the log tells followers what is undone. Then the archive
is cut, files after database, as after a crash.
"""
