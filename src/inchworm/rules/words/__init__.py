"""Words for people: why a URL was refused, kinds of failure, figures, times, names of indexes.

Nothing here decides anything. Start with `explain`.
"""
