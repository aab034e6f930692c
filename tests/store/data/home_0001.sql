-- What schema version 1 wrote: the dump of a real crawl that paused at its budget. Never edit it; add the next one.
BEGIN TRANSACTION;
CREATE TABLE crawl (
  crawl_id   TEXT PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  seeds      TEXT NOT NULL,
  seeds_key  TEXT NOT NULL,
  settings   TEXT NOT NULL,
  created_ms INTEGER NOT NULL
);
INSERT INTO "crawl" VALUES('feabae0059','old','["http://127.0.0.1:8765/"]','http://127.0.0.1:8765/','{"delay": 0, "budget": 7}',1794783174163);
CREATE TABLE inbox (
  inbox_id   INTEGER PRIMARY KEY,
  crawl_id   TEXT NOT NULL,
  verb       TEXT NOT NULL,
  argument   TEXT NOT NULL,
  asked_ms   INTEGER NOT NULL,
  done_ms    INTEGER,
  answer     TEXT
);
CREATE INDEX crawl_seeds ON crawl (seeds_key);
CREATE INDEX inbox_open ON inbox (crawl_id) WHERE done_ms IS NULL;
COMMIT;
PRAGMA user_version = 1;
