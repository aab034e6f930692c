"""What changed between two versions of a page.

Start with `change`; `stamps` finds differences that most pages of a host share, `validators` says whom to believe.
"""
