"""What goes out: exports of a run's record."""
