"""Fields that people want out of pages: how they are written, how they are taken, how they are converted.

Selectors come from people and pages from anywhere, so `extract` runs only in the killable child. Start with
`selectors`.
"""
