"""All SQL, and the files it lives in.

Rooms: `crawl` (crawl.db: one crawl), `home` (home.db: which crawls there are, jobs, events), `follow` (what follows a
crawl's log in files of its own). `database` is the port to a database and says in what SQL it is spoken to; `sqlite` is
its adapter, and the only one that knows SQLite. `lock` says who works on a crawl. Imports `model`, `job`, `rules`,
`ports`. Start with `crawl.store`.

One file per crawl. `home.db` lists the crawls. Each crawl is a folder with `crawl.db`, `archive/`, a lock file and the
reading mark. A crawl's file has one writer, its owner; all others open it read-only. What they want of the owner
(pause, cancel, retry) they leave in an inbox in `home.db`.
"""
