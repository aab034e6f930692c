"""Documents that are no HTML: PDF, office, plain text, data.

`media` says what a document is, each reader gives `contents.Contents`. All of it runs in the killable child when it is
risky. Start with `media`.
"""
