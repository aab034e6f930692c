CREATE TABLE crawl (
  crawl_id   TEXT PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  seeds      TEXT NOT NULL,              -- JSON list, as typed
  seeds_key  TEXT NOT NULL,              -- the set of canonical seeds, sorted
  settings   TEXT NOT NULL,              -- JSON: what the user set explicitly
  created_ms INTEGER NOT NULL
);
CREATE INDEX crawl_seeds ON crawl (seeds_key);

-- What other processes ask of the owner of a run.
CREATE TABLE inbox (
  inbox_id   INTEGER PRIMARY KEY,
  crawl_id   TEXT NOT NULL,
  verb       TEXT NOT NULL,              -- pause, cancel, retry
  argument   TEXT NOT NULL,              -- JSON
  asked_ms   INTEGER NOT NULL,
  done_ms    INTEGER,
  answer     TEXT
);
CREATE INDEX inbox_open ON inbox (crawl_id) WHERE done_ms IS NULL;
