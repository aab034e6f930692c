"""Commands about what a crawl has: export, show, read, search, report, fields. Start with `export`."""
