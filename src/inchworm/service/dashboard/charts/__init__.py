"""Charts as values, drawn by templates. Start with `draw`."""
