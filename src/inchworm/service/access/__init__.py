"""Who may pass: tokens, the gate in front of every request, login, requests that are carried out once.

Start with `gate`.
"""
