-- One crawl, all its runs. Times are integer milliseconds, JSON is text.

CREATE TABLE owner (                     -- one row: who may write
  only       INTEGER PRIMARY KEY CHECK (only = 1),
  token      INTEGER NOT NULL,           -- the fencing token; every commit carries it
  heartbeat  INTEGER NOT NULL,           -- grows with every sign of life
  beat_ms    INTEGER NOT NULL DEFAULT 0, -- when that was, on the machine's clock since boot
  boot       TEXT,                       -- which boot of the machine
  pid        INTEGER,
  machine    TEXT
);
INSERT INTO owner (only, token, heartbeat) VALUES (1, 0, 0);

CREATE TABLE url (                       -- every URL of every run, by its canonical form
  url_id     INTEGER PRIMARY KEY,
  hash       INTEGER NOT NULL,           -- 64-bit; a hit is confirmed by comparing the URL
  url        TEXT NOT NULL
);
CREATE INDEX url_hash ON url (hash);

CREATE TABLE host (
  host_id    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  wait_until_ms INTEGER NOT NULL DEFAULT 0, -- it asked us to stay away until then
  wait_ms    INTEGER NOT NULL DEFAULT 0     -- for how long, in case somebody sets the clock
);

CREATE TABLE run (
  run_id     INTEGER PRIMARY KEY,
  number     INTEGER NOT NULL UNIQUE,
  mode       TEXT NOT NULL,
  parent     INTEGER,
  state      TEXT NOT NULL,
  seq        INTEGER NOT NULL DEFAULT 0, -- one per visit; goes back with a rewind
  settings   TEXT NOT NULL,              -- JSON: the run settings, frozen
  disturbed  TEXT NOT NULL DEFAULT '',   -- why the order is not the undisturbed one
  created_ms INTEGER NOT NULL,
  ended_ms   INTEGER,
  inbox_id   INTEGER NOT NULL DEFAULT 0, -- the last request of others that was carried out
  known      INTEGER NOT NULL DEFAULT 0,
  pending    INTEGER NOT NULL DEFAULT 0,
  pages      INTEGER NOT NULL DEFAULT 0,
  duplicates INTEGER NOT NULL DEFAULT 0,
  unchanged  INTEGER NOT NULL DEFAULT 0,
  resources  INTEGER NOT NULL DEFAULT 0,
  redirects  INTEGER NOT NULL DEFAULT 0,
  failed     INTEGER NOT NULL DEFAULT 0,
  refused    INTEGER NOT NULL DEFAULT 0,
  requests   INTEGER NOT NULL DEFAULT 0,
  size       INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE seed (
  run_id     INTEGER NOT NULL,
  number     INTEGER NOT NULL,
  url        TEXT NOT NULL,
  host       TEXT NOT NULL,              -- moves when the seed redirects
  path       TEXT NOT NULL,              -- widens when the seed redirects
  kept       INTEGER NOT NULL DEFAULT 0,
  requests   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, number)
);

CREATE TABLE session (
  run_id     INTEGER NOT NULL,
  number     INTEGER NOT NULL,
  token      INTEGER NOT NULL,
  state      TEXT NOT NULL,
  ended_by   TEXT,
  message    TEXT NOT NULL DEFAULT '',
  settings   TEXT NOT NULL,              -- JSON: the session settings
  start_seq  INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  ended_ms   INTEGER,
  requests   INTEGER NOT NULL DEFAULT 0,
  size       INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, number)
);

CREATE TABLE frontier (                  -- the queue is the visited set: one row per run and URL
  run_id     INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  state      TEXT NOT NULL,              -- pending, done, refused
  reason     TEXT,                       -- why refused
  kind       TEXT NOT NULL,              -- page, resource, robots, sitemap
  source     TEXT NOT NULL,
  seed       INTEGER NOT NULL,
  depth      INTEGER NOT NULL,
  hops       INTEGER NOT NULL,
  lane       INTEGER NOT NULL,
  found      INTEGER NOT NULL,           -- seq of the visit that found it; above run.seq: does not exist
  found_on   INTEGER,                    -- url_id of that visit
  lastmod    TEXT,                       -- what a sitemap says
  place_seq  INTEGER NOT NULL,           -- the place in the lane: (place_seq, place_idx)
  place_idx  INTEGER NOT NULL,
  request_url TEXT,                      -- as first found, when it differs from the canonical form
  attempts   INTEGER NOT NULL DEFAULT 0,
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  chain      INTEGER NOT NULL DEFAULT 0, -- redirects that led here
  tried      TEXT,                       -- JSON: the request URLs of that chain
  done       INTEGER,                    -- seq of the visit that settled it
  PRIMARY KEY (run_id, url_id)
) WITHOUT ROWID;
CREATE INDEX frontier_pending ON frontier (run_id, lane, place_seq, place_idx) WHERE state = 'pending';

CREATE TABLE lane (
  run_id     INTEGER NOT NULL,
  lane       INTEGER NOT NULL,           -- a host_id; 0 when one lane holds all
  pending    INTEGER NOT NULL,
  PRIMARY KEY (run_id, lane)
);

CREATE TABLE visit (                     -- append-only; log_id is never reused, seq goes back with a rewind
  log_id     INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  session    INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  request_url TEXT,                      -- as requested, when it differs from the canonical form
  kind       TEXT NOT NULL,
  at_ms      INTEGER NOT NULL,
  outcome    TEXT NOT NULL,
  requested  INTEGER NOT NULL,           -- 0: reused without a request
  failure    TEXT,
  message    TEXT,
  status     INTEGER NOT NULL,
  millis     INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  content_type TEXT,
  etag       TEXT,
  last_modified TEXT,
  payload    BLOB,                       -- SHA-256 of the body as transferred
  text_hash  BLOB,                       -- SHA-256 of the main text, or of the body where there is none
  title      TEXT,
  language   TEXT,
  canonical  TEXT,
  meta       TEXT,                       -- JSON
  links      BLOB,                       -- url_ids, little-endian 32-bit
  redirect   INTEGER,                    -- url_id it leads to
  reader     TEXT,                       -- what read it: extractor version and settings
  file_id    INTEGER,
  "offset"   INTEGER,
  length     INTEGER,
  revisit    INTEGER NOT NULL DEFAULT 0  -- 1: the payload lies with an earlier record
);
CREATE UNIQUE INDEX visit_seq ON visit (run_id, seq);
CREATE INDEX visit_url ON visit (url_id, run_id);
CREATE INDEX visit_content ON visit (run_id, text_hash) WHERE outcome = 'page';
CREATE INDEX visit_payload ON visit (payload) WHERE file_id IS NOT NULL AND revisit = 0;

CREATE TABLE undone (                    -- log entries that take visits back; followers read them in turn
  log_id     INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  from_seq   INTEGER NOT NULL,
  to_seq     INTEGER NOT NULL
);

CREATE TABLE undo (                      -- what a commit changed in place, so that it can be taken back
  undo_id    INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  subject    TEXT NOT NULL,              -- frontier, seed
  subject_id INTEGER NOT NULL,
  before     TEXT NOT NULL               -- JSON
);
CREATE INDEX undo_seq ON undo (run_id, seq);

CREATE TABLE robots (                    -- what a committed robots.txt said
  run_id     INTEGER NOT NULL,
  origin     TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  verdict    TEXT NOT NULL,              -- rules, allow, unreadable, forgotten
  rules      BLOB,                       -- or what went wrong
  PRIMARY KEY (run_id, origin, seq)      -- the newest one counts
);

CREATE TABLE archive (                   -- the WARC files and how much of each is committed
  file_id    INTEGER PRIMARY KEY,
  run_id     INTEGER NOT NULL,
  token      INTEGER NOT NULL,
  name       TEXT NOT NULL UNIQUE,
  length     INTEGER NOT NULL
);

CREATE TABLE suspect (                   -- URLs that were being read when the process died
  run_id     INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  deaths     INTEGER NOT NULL,
  PRIMARY KEY (run_id, url_id)
);
