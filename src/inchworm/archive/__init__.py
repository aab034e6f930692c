"""The archive: WARC files, written (`warc`) and read (`reader`). Imports `ports` and `model`. Start with `warc`."""
