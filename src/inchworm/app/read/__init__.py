"""What can be known: one small object for each noun, which changes nothing.

The same read serves the command line, the library, the API and the dashboard. Each object is made of a `Workspace`, and
of the few others whose answers are part of its own; none inherits from another. Imports `store`, `engine`, `sink` and
`rules`; no act. `content` is about pages and what is in them. Start with `crawls`.
"""
