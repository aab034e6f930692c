"""What can be known of pages: each URL of a run, what the archive has of it, its text, and the site by folders.

The same rules as one floor up hold. `single` reads pages that no crawl has. Start with `pages`.
"""
