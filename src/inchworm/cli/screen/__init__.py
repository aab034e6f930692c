"""What people see: one door for all output, tables that fit, sentences and numbers, the live picture.

Nothing is printed past `door`. Start there.
"""
