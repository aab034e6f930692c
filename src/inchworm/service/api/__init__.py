"""The HTTP API under /api/v1, one module per noun.

A route parses, calls one verb of `app`, and answers; `web` has what routes share. Start with `web`, then `crawls`.
"""
