"""The fetching edge: from the web (`http`) or from an archive (`replay`), behind `ports.Fetcher`."""
