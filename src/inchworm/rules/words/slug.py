"""The name of a crawl's index on a search server: legal whatever the crawl is called, and its own.

Elasticsearch and OpenSearch take names in lower case of at most 255 bytes, without `\\ / * ? " < > | , # :` and white
space, that do not begin with `-`, `_`, `+` or `.`. We keep to letters, digits and `. _ -` of ASCII, so that the name
needs no quoting anywhere.
"""

from __future__ import annotations

import re
import unicodedata

SUFFIX = "_raw_content"
MAX_BYTES = 255

_UNFIT = re.compile(r"[^a-z0-9._-]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
# How a name ends that was given its crawl's id. A crawl may be called so by its owner: then it is given its own, too.
_ENDS_WITH_ID = re.compile(r"-[0-9a-f]{10}")


def index_name(name: str, crawl_id: str) -> str:
    """The name of the index of a crawl. Where the crawl's name loses something on the way its id is added, so that no
    other crawl comes to the same."""
    slug = _slug(name)
    room = MAX_BYTES - len(SUFFIX)
    if slug == name and len(slug) <= room and not _ENDS_WITH_ID.fullmatch(slug[-11:]):
        return slug + SUFFIX
    return f"{slug[: room - len(crawl_id) - 1].rstrip('-')}-{crawl_id}{SUFFIX}"


def _slug(name: str) -> str:
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", name)).lower()
    return _UNFIT.sub("-", plain).lstrip("._-").rstrip("-") or "crawl"
