"""What kind of page this is, and what that means for its text.

Start with `kind`.
"""
