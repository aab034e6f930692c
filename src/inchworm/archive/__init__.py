"""The archive: WARC files, written and read."""
