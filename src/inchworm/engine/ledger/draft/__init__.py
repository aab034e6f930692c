"""What the next commit will write, and what a decision sees of it before that.

Start with `draft`, which is made of the rest. `ids` and `steps` give ids, numbers of the sequence and places; `totals`,
`seeds` and `milestones` keep a run's numbers in step with its rows; `known` remembers URLs, `frontier` and `learned`
gather rows. Imports `ports` and `rules`, and of the ledger nothing but `rows`.

Decisions are made in one room above. They say what becomes of a row and ask the draft for rows as they stand by then.
Whether these come from the store, and whether something has to be written first, is the draft's own business.
"""
