"""What leaves a crawl for somewhere else: files, fields, documents on a search server.

`selection` says which pages an export holds, `export` and `folders` write them. Start with `export`.
"""
