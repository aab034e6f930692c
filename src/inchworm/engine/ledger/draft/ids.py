"""Ids of what is new to a crawl: given one after the other, because its owner is the only writer."""

from __future__ import annotations

from inchworm.model import Spot
from inchworm.ports import Commit, Store
from inchworm.rules.web import url as urls


class Ids:
    """Ids of URLs, hosts and archive files."""

    def __init__(self, store: Store, changes: Commit) -> None:
        self._changes = changes
        self._next_url, self._next_host, self._next_file = store.commits.next_ids()
        self._hosts = dict(store.hosts.all())
        self._files: dict[str, int] = {}

    def new_url(self, url: str) -> int:
        url_id = self._next_url
        self._next_url += 1
        self._changes.urls.append((url_id, urls.hash64(url), url))
        return url_id

    def host(self, url: str) -> int:
        """The number of a URL's host."""
        host = urls.host_of(url)
        host_id = self._hosts.get(host)
        if host_id is None:
            host_id = self._hosts[host] = self._next_host
            self._next_host += 1
            self._changes.hosts.append((host_id, host))
        return host_id

    def file(self, spot: Spot) -> int:
        """The number of an archive file, which now reaches to the end of this record."""
        if spot.file not in self._files:
            self._files[spot.file] = self._next_file
            self._next_file += 1
        file_id = self._files[spot.file]
        self._changes.files[spot.file] = (file_id, spot.offset + spot.length)
        return file_id
