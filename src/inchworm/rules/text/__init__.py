"""A text in other forms: as Markdown, in chunks for retrieval, as a hash that tells whether two are the same.

Start with `markdown`.
"""
