"""Writing files, folders and zip files: whole or not at all, never outside of their folder, with stable names.

Start with `file`.
"""
