"""A search server for tests: the part of the REST API of Elasticsearch and OpenSearch that keeping an index takes.

It keeps to what their documentation says, strictly: names of indexes, media types, mappings and what values their types
take, versions given from outside, bulk requests line by line, searches that see only what was refreshed. What it was
told is in a file, so it can be killed and started again. It finds documents and does not rank them.

    with SearchServer(folder, "elasticsearch") as server:
        server.client().count(index="x")     # by the official client
        server.fail(status=503, times=2)     # the next two bulk requests
        server.kill(); server.start()
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

GC_DELETES_SECONDS = 60.0
"""So long a server remembers the version of a document that was deleted (index.gc_deletes)."""

REFRESH_SECONDS = 1.0
MAX_TERM_BYTES = 32_766
MAX_ID_BYTES = 512
VERSIONS = {"elasticsearch": "9.2.0", "opensearch": "3.3.0"}
RANGES = {"byte": 7, "short": 15, "integer": 31, "long": 63}
PARAMETERS = {
    "keyword": {"type", "ignore_above", "fields", "index", "doc_values", "store", "null_value", "normalizer"},
    "text": {"type", "fields", "analyzer", "index", "store", "norms", "search_analyzer"},
    "date": {"type", "format", "ignore_malformed", "index", "doc_values", "store"},
    "boolean": {"type", "index", "doc_values", "store"},
    **{name: {"type", "index", "doc_values", "store", "coerce", "ignore_malformed"} for name in RANGES},
}
ACTION_PARAMETERS = {
    *("_index", "_id", "routing", "version", "version_type", "pipeline", "if_seq_no", "if_primary_term"),
    *("require_alias", "dynamic_templates", "op_type", "retry_on_conflict", "list_executed_pipelines"),
}
DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(?:(\d\d)(?::(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?)?)?)?"
)


class Failure(Exception):
    """An error as the server words it."""

    def __init__(self, status: int, kind: str, reason: str, cause: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.error = {"type": kind, "reason": reason, **({"caused_by": cause} if cause else {})}


# ---- names, mappings, values


def check_name(name: str) -> None:
    wrong = ""
    if name != name.lower():
        wrong = "must be lowercase"
    elif found := [c for c in name if c in ' "*\\<|,>/?']:
        wrong = f"must not contain the following characters [' ','\"','*','\\','<','|',',','>','/','?'], found {found}"
    elif "#" in name:
        wrong = "must not contain '#'"
    elif ":" in name:
        wrong = "must not contain ':'"
    elif name.startswith(("_", "-", "+")):
        wrong = "must not start with '_', '-', or '+'"
    elif len(name.encode()) > 255:
        wrong = f"index name is too long, ({len(name.encode())} > 255)"
    elif name in (".", ".."):
        wrong = "must not be '.' or '..'"
    if wrong:
        raise Failure(400, "invalid_index_name_exception", f"Invalid index name [{name}], {wrong}")


def check_mappings(mappings: dict[str, Any]) -> None:
    unknown = mappings.keys() - {"properties", "_meta", "dynamic", "_source", "date_detection", "numeric_detection"}
    if unknown:
        reason = f"Root mapping definition has unsupported parameters: {sorted(unknown)}"
        raise Failure(400, "mapper_parsing_exception", f"Failed to parse mapping: {reason}")
    for name, field in mappings.get("properties", {}).items():
        check_field(name, field)


def check_field(name: str, field: dict[str, Any]) -> None:
    kind = field.get("type")
    reason = ""
    if kind not in PARAMETERS:
        reason = f"No handler for type [{kind}] declared on field [{name}]"
    elif unknown := field.keys() - PARAMETERS[kind]:
        reason = f"unknown parameter [{min(unknown)}] on mapper [{name}] of type [{kind}]"
    if reason:
        raise Failure(400, "mapper_parsing_exception", f"Failed to parse mapping: {reason}")
    for inner, extra in field.get("fields", {}).items():
        check_field(f"{name}.{inner}", extra)


def check_document(mappings: dict[str, Any], document: Any, where: str, kind: str) -> None:
    if not isinstance(document, dict):
        raise Failure(400, kind, "[1:1] failed to parse", {"type": "parsing_exception", "reason": "not an object"})
    properties = mappings.get("properties", {})
    for name, value in document.items():
        if name in properties:
            values = value if isinstance(value, list) else [value]
            for one in values:
                check_value(name, properties[name], one, where, kind)
        elif str(mappings.get("dynamic", "true")).lower() == "strict":
            reason = f"[1:1] mapping set to strict, dynamic introduction of [{name}] within [_doc] is not allowed"
            raise Failure(400, "strict_dynamic_mapping_exception", reason)


def check_value(name: str, field: dict[str, Any], value: Any, where: str, kind: str) -> None:
    if value is None:
        return
    cause = value_cause(field, value)
    if cause:
        shown = str(value)[:64]
        reason = (
            f"[1:1] failed to parse field [{name}] of type [{field['type']}] in document with id '{where}'."
            f" Preview of field's value: '{shown}'"
        )
        raise Failure(400, kind, reason, {"type": "illegal_argument_exception", "reason": cause})
    if field["type"] == "keyword" and len(str(value)) <= field.get("ignore_above", 2**31):
        size = len(str(value).encode())
        if size > MAX_TERM_BYTES:
            reason = f'Document contains at least one immense term in field="{name}" (whose UTF8 encoding is longer'
            reason += f" than the max length {MAX_TERM_BYTES}), all of which were skipped."
            raise Failure(400, "illegal_argument_exception", reason)
    for inner, extra in field.get("fields", {}).items():
        check_value(f"{name}.{inner}", extra, value, where, kind)


def value_cause(field: dict[str, Any], value: Any) -> str:
    """Why a type does not take a value; empty when it does."""
    kind = field["type"]
    if isinstance(value, dict | list):
        return f"Expected text at 1:1 but found {'START_OBJECT' if isinstance(value, dict) else 'START_ARRAY'}"
    if kind in RANGES:
        try:
            number = int(float(value)) if isinstance(value, str) else int(value)
        except ValueError:
            return f'For input string: "{value}"'
        if isinstance(value, bool) or not -(2 ** RANGES[kind]) <= number < 2 ** RANGES[kind]:
            return f"Value [{value}] is out of range for {kind}"
    if kind == "date" and not is_date(value, field.get("format", "strict_date_optional_time||epoch_millis")):
        return f"failed to parse date field [{value}] with format [{field.get('format')}]"
    if kind == "boolean" and value not in (True, False, "true", "false", ""):
        return f"Failed to parse value [{value}] as only [true] or [false] are allowed."
    return ""


def is_date(value: Any, formats: str) -> bool:
    if "epoch_millis" in formats and re.fullmatch(r"-?\d+", str(value)):
        return True
    found = DATE.fullmatch(str(value)) if isinstance(value, str) else None
    if not found:
        return False
    numbers = [int(part or default) for part, default in zip(found.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)]
    try:
        datetime(*numbers)  # noqa: DTZ001 - only whether it exists
    except ValueError:
        return False
    return True


# ---- what it holds


class Holdings:
    """Indexes and documents, in a file."""

    def __init__(self, path: Path, product: str) -> None:
        self._product = product
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.executescript(
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE IF NOT EXISTS indexes (name TEXT PRIMARY KEY, uuid TEXT, mappings TEXT, refreshed REAL);"
            "CREATE TABLE IF NOT EXISTS documents (name TEXT, id TEXT, version INTEGER, source TEXT, deleted REAL,"
            " shown TEXT, PRIMARY KEY (name, id));"
        )
        self.lock = threading.RLock()

    @contextlib.contextmanager
    def writing(self):
        with self.lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def mappings(self, name: str) -> dict[str, Any]:
        row = self._db.execute("SELECT mappings FROM indexes WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise Failure(404, "index_not_found_exception", f"no such index [{name}]")
        return json.loads(row[0])

    def create(self, name: str, mappings: dict[str, Any]) -> None:
        check_name(name)
        check_mappings(mappings)
        with contextlib.suppress(Failure):
            self.mappings(name)
            found = self._db.execute("SELECT uuid FROM indexes WHERE name = ?", (name,)).fetchone()[0]
            raise FileExistsError(found)
        self._db.execute(
            "INSERT INTO indexes VALUES (?, ?, ?, ?)", (name, uuid.uuid4().hex[:22], json.dumps(mappings), time.time())
        )

    def delete_index(self, name: str) -> None:
        self.mappings(name)
        self._db.execute("DELETE FROM indexes WHERE name = ?", (name,))
        self._db.execute("DELETE FROM documents WHERE name = ?", (name,))

    def refresh(self, name: str) -> None:
        self.mappings(name)
        self._db.execute("UPDATE documents SET shown = source WHERE name = ?", (name,))
        self._db.execute("UPDATE indexes SET refreshed = ? WHERE name = ?", (time.time(), name))

    def found(self, name: str, query: dict[str, Any]) -> list[tuple[str, int, dict[str, Any]]]:
        """What a search sees: what was there at the last refresh."""
        self.mappings(name)
        last = self._db.execute("SELECT refreshed FROM indexes WHERE name = ?", (name,)).fetchone()[0]
        if time.time() - last > REFRESH_SECONDS:
            self.refresh(name)
        rows = self._db.execute(
            "SELECT id, version, shown FROM documents WHERE name = ? AND shown IS NOT NULL ORDER BY id", (name,)
        ).fetchall()
        loaded = [(doc_id, version, json.loads(shown)) for doc_id, version, shown in rows]
        return [one for one in loaded if matches(query, one[2])]

    def get(self, name: str, doc_id: str) -> tuple[int, dict[str, Any]] | None:
        self.mappings(name)
        row = self._row(name, doc_id)
        return (row[0], json.loads(row[1])) if row and row[1] is not None else None

    def _row(self, name: str, doc_id: str) -> tuple[int, str | None] | None:
        row = self._db.execute(
            "SELECT version, source, deleted FROM documents WHERE name = ? AND id = ?", (name, doc_id)
        ).fetchone()
        if row and row[1] is None and time.time() - row[2] > GC_DELETES_SECONDS:
            return None
        return row[:2] if row else None

    def act(self, action: str, where: dict[str, Any], document: Any) -> dict[str, Any]:
        """One line of a bulk request: what is said of it."""
        name, doc_id = where["_index"], where.get("_id") or uuid.uuid4().hex
        try:
            status, version, result = self._act(action, name, doc_id, where, document)
        except Failure as failure:
            return {"_index": name, "_id": doc_id, "status": failure.status, "error": failure.error}
        shards = {"total": 2, "successful": 1, "failed": 0}
        said = {"_index": name, "_id": doc_id, "_version": version, "result": result, "_shards": shards}
        return {**said, "_seq_no": 0, "_primary_term": 1, "status": status}

    def _act(self, action: str, name: str, doc_id: str, where: dict[str, Any], document: Any) -> tuple[int, int, str]:
        try:
            mappings = self.mappings(name)
        except Failure:
            # action.auto_create_index is on by default.
            self.create(name, {})
            mappings = {}
        if len(doc_id.encode()) > MAX_ID_BYTES:
            size = len(doc_id.encode())
            reason = f"id [{doc_id}] is too long, must be no longer than {MAX_ID_BYTES} bytes but was: {size}"
            raise Failure(400, "illegal_argument_exception", reason)
        row = self._row(name, doc_id)
        is_there = row is not None and row[1] is not None
        kind = "document_parsing_exception" if self._product == "elasticsearch" else "mapper_parsing_exception"
        if action == "delete":
            version = self._next_version(doc_id, row, where)
            self._put(name, doc_id, version, None)
            return (200, version, "deleted") if is_there else (404, version, "not_found")
        check_document(mappings, document, doc_id, kind)
        if action == "create" and is_there:
            raise conflict(doc_id, "document already exists")
        version = self._next_version(doc_id, row, where)
        self._put(name, doc_id, version, json.dumps(document))
        return (200, version, "updated") if is_there else (201, version, "created")

    @staticmethod
    def _next_version(doc_id: str, row: tuple[int, str | None] | None, where: dict[str, Any]) -> int:
        current = row[0] if row else -1
        if where.get("version_type", "internal") == "internal":
            return max(current, 0) + 1
        given = int(where["version"])
        if where["version_type"] == "external" and current >= given:
            raise conflict(doc_id, f"current version [{current}] is higher or equal to the one provided [{given}]")
        if where["version_type"] == "external_gte" and current > given:
            raise conflict(doc_id, f"current version [{current}] is higher than the one provided [{given}]")
        return given

    def _put(self, name: str, doc_id: str, version: int, source: str | None) -> None:
        self._db.execute(
            "INSERT INTO documents VALUES (?1, ?2, ?3, ?4, ?5, NULL) ON CONFLICT (name, id)"
            " DO UPDATE SET version = ?3, source = ?4, deleted = ?5",
            (name, doc_id, version, source, time.time() if source is None else None),
        )


def conflict(doc_id: str, why: str) -> Failure:
    return Failure(409, "version_conflict_engine_exception", f"[{doc_id}]: version conflict, {why}")


def matches(query: dict[str, Any], source: dict[str, Any]) -> bool:
    (kind, what), *more = query.items() or [("match_all", {})]
    if more:
        raise Failure(400, "parsing_exception", "[query] malformed query, expected [END_OBJECT]")
    if kind == "match_all":
        return True
    (field, wanted), *_ = what.items()
    wanted = wanted["query" if kind == "match" else "value"] if isinstance(wanted, dict) else wanted
    held = source.get(field)
    values = held if isinstance(held, list) else [held]
    if kind == "term":
        return wanted in values
    if kind == "match":
        return bool({*wanted.lower().split()} & {word for one in values for word in str(one).lower().split()})
    raise Failure(400, "parsing_exception", f"unknown query [{kind}]")


# ---- requests


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None: ...

    def _work(self) -> None:
        parts = urlsplit(self.path)
        self.words = [unquote(word) for word in parts.path.split("/") if word]
        self.parameters = parse_qs(parts.query)
        self.body = b""
        try:
            self._check_access()
            self.body = self._read_body()
            if self.words[:1] == ["_test"]:
                self._answer(200, self.server.control(json.loads(self.body)))
                return
            self._check_media_types()
            status, said = self._carry_out()
        except Failure as failure:
            root = {"root_cause": [failure.error], **failure.error}
            status, said = failure.status, {"error": root, "status": failure.status}
        self._answer(status, said)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _work  # noqa: N815 - names that http.server wants

    def _check_access(self) -> None:
        wanted = self.server.options.user
        if not wanted or self.path.startswith("/_test"):
            return
        given = self.headers.get("Authorization", "")
        if given != "Basic " + base64.b64encode(wanted.encode()).decode():
            who = base64.b64decode(given[6:]).decode().partition(":")[0] if given.startswith("Basic ") else ""
            why = f"unable to authenticate user [{who}]" if who else "missing authentication credentials"
            raise Failure(401, "security_exception", f"{why} for REST request [{self.path}]")

    def _read_body(self) -> bytes:
        size = int(self.headers.get("Content-Length") or 0)
        if size > self.server.options.max_content_length:
            self.close_connection = True
            # A server that closes with something unread resets the connection, and its answer is lost.
            while size > 0:
                size -= len(self.rfile.read(min(size, 1 << 16)))
            raise Failure(413, "status_exception", "Content Too Large")
        return self.rfile.read(size)

    def _check_media_types(self) -> None:
        accept, content = self.headers.get("Accept", ""), self.headers.get("Content-Type", "") if self.body else ""
        is_ours = self.server.options.product == "elasticsearch"
        versions = {found for text in (accept, content) for found in re.findall(r"compatible-with=(\d+)", text)}
        major = VERSIONS["elasticsearch"].partition(".")[0] if is_ours else ""
        wrong = ""
        if versions - {major, str(int(major or 1) - 1)}:
            wrong = f"Accept version must be either version {major} or {int(major or 1) - 1}, but found {versions}"
        elif versions and self.body and not ("compatible-with" in accept and "compatible-with" in content):
            wrong = "A compatible version is required on both Content-Type and Accept headers"
        if wrong:
            cause = {"type": "status_exception", "reason": wrong}
            reason = "Invalid media-type value on headers [Accept, Content-Type]"
            raise Failure(400, "media_type_header_exception", reason, cause)
        kinds = ("json", "x-ndjson") if self.words[-1:] == ["_bulk"] else ("json",)
        if self.body and not any(content.partition(";")[0].endswith((f"/{kind}", f"+{kind}")) for kind in kinds):
            raise Failure(406, "status_exception", f"Content-Type header [{content}] is not supported")

    def _carry_out(self) -> tuple[int, Any]:
        method, words, held = self.command, self.words, self.server.held
        if not words:
            return 200, self.server.greeting()
        if words[-1] == "_bulk" and method in ("POST", "PUT"):
            return self.server.bulk(self.body, words[0] if len(words) == 2 else None)
        with held.writing():
            if len(words) == 1:
                return self._index(method, words[0])
            name, what = words[0], words[1]
            if what == "_mapping" and method == "GET":
                return 200, {name: {"mappings": held.mappings(name)}}
            if what == "_refresh" and method in ("POST", "GET"):
                held.refresh(name)
                return 200, {"_shards": {"total": 2, "successful": 1, "failed": 0}}
            if what == "_doc" and method == "GET":
                return self._document(name, words[2])
            if what in ("_search", "_count"):
                return 200, self._search(name, what)
        raise Failure(
            400, "illegal_argument_exception", f"no handler found for uri [{self.path}] and method [{method}]"
        )

    def _index(self, method: str, name: str) -> tuple[int, Any]:
        held = self.server.held
        if method == "PUT":
            body = json.loads(self.body) if self.body else {}
            if unknown := body.keys() - {"mappings", "settings", "aliases"}:
                raise Failure(400, "parse_exception", f"unknown key {sorted(unknown)} for create index")
            try:
                held.create(name, body.get("mappings", {}))
            except FileExistsError as found:
                reason = f"index [{name}/{found}] already exists"
                raise Failure(400, "resource_already_exists_exception", reason) from None
            return 200, {"acknowledged": True, "shards_acknowledged": True, "index": name}
        if method == "DELETE":
            if "*" in name or name == "_all":
                reason = "Wildcard expressions or all indices are not allowed"
                raise Failure(400, "illegal_argument_exception", reason)
            held.delete_index(name)
            return 200, {"acknowledged": True}
        return 200, {name: {"mappings": held.mappings(name)}}

    def _document(self, name: str, doc_id: str) -> tuple[int, Any]:
        found = self.server.held.get(name, doc_id)
        said = {"_index": name, "_id": doc_id, "found": found is not None}
        return (200, {**said, "_version": found[0], "_source": found[1]}) if found else (404, said)

    def _search(self, name: str, what: str) -> dict[str, Any]:
        asked = json.loads(self.body) if self.body else {}
        found = self.server.held.found(name, asked.get("query") or {"match_all": {}})
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        if what == "_count":
            return {"count": len(found), "_shards": shards}
        size = int(asked.get("size", self.parameters.get("size", [10])[0]))
        if size > 10_000:
            raise Failure(400, "illegal_argument_exception", "Result window is too large")
        hits = [
            {"_index": name, "_id": doc_id, "_version": version, "_score": 1.0, "_source": source}
            for doc_id, version, source in found[:size]
        ]
        total = {"value": len(found), "relation": "eq"}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"total": total, "hits": hits}}

    def _answer(self, status: int, said: Any) -> None:
        data = b"" if self.command == "HEAD" else json.dumps(said).encode()
        is_ours = self.server.options.product == "elasticsearch"
        versioned = is_ours and "compatible-with" in self.headers.get("Accept", "")
        kind = "application/vnd.elasticsearch+json;compatible-with=9" if versioned else "application/json"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if is_ours:
            self.send_header("X-Elastic-Product", "Elasticsearch")
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="security", charset="UTF-8"')
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(("127.0.0.1", options.port), Handler)
        self.options = options
        self.held = Holdings(Path(options.folder) / "held.db", options.product)
        self._faults: list[dict[str, Any]] = []
        self._log: list[dict[str, int]] = []
        self._received = 0

    def control(self, asked: dict[str, Any]) -> Any:
        """What only a test asks for: faults to come, and which bulk requests there were."""
        self._faults = asked.get("faults", self._faults)
        return {"log": self._log, "received": self._received}

    def greeting(self) -> dict[str, Any]:
        number, product = VERSIONS[self.options.product], self.options.product
        about = {"number": number, "lucene_version": "10.3.0", "build_type": "tar"}
        if product == "opensearch":
            tagline = "The OpenSearch Project: https://opensearch.org/"
            return {"name": "test", "version": {"distribution": "opensearch", **about}, "tagline": tagline}
        return {"name": "test", "version": {"build_flavor": "default", **about}, "tagline": "You Know, for Search"}

    def bulk(self, body: bytes, default: str | None) -> tuple[int, Any]:
        fault = self._faults.pop(0) if self._faults else {}
        self._received += 1
        time.sleep(fault.get("delay", 0))
        if fault.get("die") == "before":
            os._exit(9)
        if "status" in fault:
            kind = "es_rejected_execution_exception" if fault["status"] == 429 else "unavailable_exception"
            raise Failure(fault["status"], kind, "rejected execution of coordinating operation")
        lines = bulk_lines(body, default)
        self._log.append({"bytes": len(body), "lines": len(lines)})
        items = []
        with self.held.writing():
            for number, (action, where, document) in enumerate(lines):
                if fault.get("item_status") and number % fault.get("every", 1) == 0:
                    error = {"type": fault.get("type", "es_rejected_execution_exception"), "reason": "rejected"}
                    said = {"_index": where["_index"], "_id": where["_id"], "status": fault["item_status"]}
                    items.append({action: {**said, "error": error}})
                else:
                    items.append({action: self.held.act(action, where, document)})
        if fault.get("die") == "after":
            os._exit(9)
        errors = any("error" in said for item in items for said in item.values())
        return 200, {"took": 1, "errors": errors, "items": items}


def bulk_lines(body: bytes, default: str | None) -> list[tuple[str, dict[str, Any], Any]]:
    if not body:
        raise Failure(400, "parse_exception", "request body is required")
    if not body.endswith(b"\n"):
        raise Failure(400, "illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]")
    lines, found, at = body.split(b"\n")[:-1], [], 0
    while at < len(lines):
        try:
            ((action, where),) = json.loads(lines[at]).items()
        except ValueError:
            reason = f"Malformed action/metadata line [{at + 1}], expected START_OBJECT"
            raise Failure(400, "illegal_argument_exception", reason) from None
        if action not in ("index", "create", "delete"):
            reason = (
                f"Malformed action/metadata line [{at + 1}], expected field [create], [delete], [index] or [update]"
            )
            raise Failure(400, "illegal_argument_exception", f"{reason} but found [{action}]")
        for name in where.keys() - ACTION_PARAMETERS:
            reason = f"Action/metadata line [{at + 1}] contains an unknown parameter [{name}]"
            raise Failure(400, "illegal_argument_exception", reason)
        where.setdefault("_index", default)
        document = None
        if action != "delete":
            at += 1
            try:
                document = json.loads(lines[at].decode())
            except (ValueError, IndexError):
                document = "unreadable"
        found.append((action, where, document))
        at += 1
    return found


# ---- for tests


class SearchServer:
    """A server in a process of its own, at the same port each time it is started."""

    def __init__(
        self, folder: Path, product: str, user: str = "", max_content_length: int = 100_000_000, port: int = 0
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.product = product
        self.port = port
        self._user = user
        self._arguments = ["--folder", str(folder), "--product", product, "--user", user]
        self._arguments += ["--max-content-length", str(max_content_length)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> SearchServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        command = [sys.executable, __file__, *self._arguments, "--port", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout
            self._process.stdout.close()
            self._process = None

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        return f"http://{self._user}{'@' if self._user else ''}127.0.0.1:{self.port}"

    def client(self) -> Any:
        """The product's own client."""
        user = tuple(self._user.split(":")) if self._user else None
        if self.product == "elasticsearch":
            from elasticsearch import Elasticsearch

            return Elasticsearch(f"http://127.0.0.1:{self.port}", basic_auth=user, max_retries=0)
        from opensearchpy import OpenSearch

        return OpenSearch([{"host": "127.0.0.1", "port": self.port}], http_auth=user, max_retries=0)

    def documents(self, name: str) -> dict[str, dict[str, Any]]:
        """All documents of an index, by URL."""
        with contextlib.closing(self.client()) as client:
            client.indices.refresh(index=name)
            found = client.search(index=name, **self._query({"query": {"match_all": {}}, "size": 10_000}))
        return {hit["_source"]["url"]: hit["_source"] for hit in found["hits"]["hits"]}

    def _query(self, body: dict[str, Any]) -> dict[str, Any]:
        return body if self.product == "elasticsearch" else {"body": body}

    def create(self, name: str, body: dict[str, Any]) -> None:
        with contextlib.closing(self.client()) as client:
            client.indices.create(index=name, **self._query(body))

    def delete(self, name: str) -> None:
        with contextlib.closing(self.client()) as client:
            client.indices.delete(index=name)

    def fail(self, times: int = 1, **fault: Any) -> None:
        """Let the next bulk requests go wrong: `status`, `item_status`, `die` before or after, `delay`. Those that were
        still to come are forgotten."""
        self._control({"faults": [fault] * times})

    def bulks(self) -> list[dict[str, int]]:
        """The bulk requests since the last start that were carried out."""
        return self._control({})["log"]

    def received(self) -> int:
        """How many bulk requests there were since the last start, whatever came of them."""
        return self._control({})["received"]

    def _control(self, asked: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/_test", json.dumps(asked).encode())
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--product", choices=list(VERSIONS), default="elasticsearch")
    parser.add_argument("--user", default="", help="user:password, when they are wanted")
    parser.add_argument("--max-content-length", type=int, default=100_000_000)
    parser.add_argument("--port", type=int, default=0)
    server = Server(parser.parse_args())
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
