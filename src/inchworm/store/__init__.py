"""All SQL. `home` knows the crawls, `crawl` is one crawl's own file; `migrations` are their schemas."""
