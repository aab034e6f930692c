"""Jobs: made and steered by people, handed out by a service, carried out in processes of their own.

`change` makes and steers them, `hand_over` makes those that start sessions, `repetition` the one that repeats a crawl.
`dispatch` is what the scheduler of a service asks and decides, `execute` what the process of an execution does, with
its `keeper` beside it. Start with `change`.
"""
