"""The part of a run's frontier that is in memory.

Start with `window`. A `lane` has the entries of one host; `places` loads them in the order of their places, `ranks`
chooses them by rank. Imports `ports` and `rules`, and ranking only as a type.
"""
