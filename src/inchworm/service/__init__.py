"""inchworm over HTTP: who comes in, what can be asked, and the pages that show it.

Rooms: `access` (who may pass), `api` (routes for programs), `dashboard` (pages for people). `serve` starts and stops,
`build` puts every route together, `scheduler` runs jobs, each in a process of its own. Calls the verbs of `app`; no
store. Start with `serve`.
"""
