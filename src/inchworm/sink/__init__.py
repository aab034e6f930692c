"""What goes out: exports, files, and servers that are told.

`export` lists the formats, `columns` is the one table of columns. Rooms: `files` (files and folders that are there
when they are whole), `servers` (search servers and notifications). Imports `page`, `rules`, `settings`; no store. Start
with `export`.
"""
