"""The dashboard: pages for people, made on the server, of the same verbs that the API calls.

One module per page or noun, a template of the same name; `frame` has what all share, `charts` what is drawn. Start
with `frame`, then `crawls`.

A page changes nothing when it is looked at; whatever does something is a form, with a key that only our pages know,
and then leads to a page that says what came of it. The parts of a page that change are made by one function for the
first look and for every later one. While somebody watches they are made once a second at most, and only when the files
they are made of were written; each browser has one connection, in a worker that its tabs share (decision 0018).
"""
