"""The fetching edge: from the web (`http`) or from an archive (`replay`), behind `ports.Fetcher`.

Nothing hostile in here: answers are cut off at their limit while they are decoded, addresses are judged when they are
dialled (`guard`). Imports `ports`, `rules`, `model`. Start with `http`.
"""
