"""What people, exports and the service ask of a crawl's tables. Reads only, in small steps, so that the owner is never
held up.

One object for each noun, made of an open crawl: `visits`, `copies` (pages with the same text), `urls` and the links
between them, `frontier`, `failures`, `counts`, `archive` (its records), `checks` (whether all is well), `progress` of a
run, `reports` on one, `compare` for two, and `now`, the crawl as all runs left it. Start with `visits`.
"""
