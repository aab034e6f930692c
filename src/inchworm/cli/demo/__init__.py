"""The demo: a small site, a crawler that is killed half way, and what it does then. Start with `story`."""
