-- What holds for every session of a crawl, and whether it takes part in schedules.
ALTER TABLE crawl ADD COLUMN defaults TEXT NOT NULL DEFAULT '{}';        -- JSON: settings below what a start names
ALTER TABLE crawl ADD COLUMN incremental INTEGER NOT NULL DEFAULT 1;     -- 0: no budget, every start is a new run
ALTER TABLE crawl ADD COLUMN enabled INTEGER NOT NULL DEFAULT 1;
ALTER TABLE crawl ADD COLUMN typed INTEGER NOT NULL DEFAULT 1;           -- 1: its seeds were typed on this machine

CREATE TABLE job (
  job_id           TEXT PRIMARY KEY,
  crawl_id         TEXT NOT NULL,
  state            TEXT NOT NULL,
  task             TEXT NOT NULL,             -- JSON: which verb an execution calls, with what
  interval_count   INTEGER,                   -- NULL: not by the clock
  interval_unit    TEXT NOT NULL,
  schedule_enabled INTEGER NOT NULL,
  adaptive         INTEGER NOT NULL,
  unchanged        INTEGER NOT NULL DEFAULT 0,  -- executions in a row that found the seeds unchanged
  max_retries      INTEGER NOT NULL,
  backoff_s        INTEGER NOT NULL,
  retries          INTEGER NOT NULL DEFAULT 0,  -- failed tries of the occurrence in hand
  crashes          INTEGER NOT NULL DEFAULT 0,  -- tries of it that nobody ended
  occurrence_ms    INTEGER,                   -- for when the occurrence in hand was planned
  due_ms           INTEGER,                   -- when it is to be tried; NULL: not by itself
  aside_ms         INTEGER,                   -- the planned time that a run in between leaves as it is
  slot             INTEGER,
  moved_ms         INTEGER,
  lock_token       TEXT,
  beats            INTEGER NOT NULL DEFAULT 0,
  executions       INTEGER NOT NULL DEFAULT 0,  -- how many there were; never goes back
  after_job_id     TEXT,
  repetition       TEXT,                      -- JSON: when to stop, whom to tell
  reason           TEXT NOT NULL DEFAULT '',  -- why it stands where it stands
  metadata         TEXT NOT NULL,
  created_ms       INTEGER NOT NULL,
  updated_ms       INTEGER NOT NULL,
  last_ms          INTEGER                    -- when the last execution began
);
CREATE INDEX job_due ON job (due_ms) WHERE due_ms IS NOT NULL AND lock_token IS NULL;
CREATE INDEX job_locked ON job (crawl_id) WHERE lock_token IS NOT NULL;
CREATE INDEX job_crawl ON job (crawl_id);
CREATE INDEX job_state ON job (state, job_id);
CREATE INDEX job_slot ON job (slot, due_ms) WHERE slot IS NOT NULL;
CREATE INDEX job_after ON job (after_job_id) WHERE after_job_id IS NOT NULL;
CREATE INDEX job_created ON job (created_ms, job_id);
CREATE INDEX job_next ON job (COALESCE(due_ms, 9007199254740991 - created_ms), job_id);  -- those with none: newest first

-- How many jobs wait in each quarter of an hour of the day. Kept, not counted.
CREATE TABLE slot (
  slot INTEGER PRIMARY KEY,
  jobs INTEGER NOT NULL
);

CREATE TABLE execution (
  execution_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id        TEXT NOT NULL,
  crawl_id      TEXT NOT NULL,
  number        INTEGER NOT NULL,
  occurrence_ms INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  state         TEXT NOT NULL,                -- running, completed, failed, cancelled
  token         TEXT NOT NULL,
  service_id    TEXT NOT NULL,
  machine       TEXT NOT NULL DEFAULT '',
  pid           INTEGER NOT NULL DEFAULT 0,
  started_ms    INTEGER NOT NULL,
  ended_ms      INTEGER,
  run           INTEGER,
  session       INTEGER,
  ended_by      TEXT NOT NULL DEFAULT '',
  pages         INTEGER NOT NULL DEFAULT 0,
  indexed       INTEGER NOT NULL DEFAULT 0,
  progress      TEXT NOT NULL DEFAULT '{}',   -- JSON: how far it is
  error         TEXT NOT NULL DEFAULT '',
  trace         TEXT NOT NULL DEFAULT '',
  cpu_ms        INTEGER NOT NULL DEFAULT 0,
  memory_kb     INTEGER NOT NULL DEFAULT 0,
  UNIQUE (job_id, number),
  UNIQUE (job_id, occurrence_ms, attempt)
);
CREATE INDEX execution_running ON execution (service_id) WHERE state = 'running';
CREATE INDEX execution_started ON execution (started_ms);
CREATE INDEX execution_ended ON execution (ended_ms) WHERE ended_ms IS NOT NULL;

CREATE TABLE log_line (
  execution_id INTEGER NOT NULL,
  number       INTEGER NOT NULL,
  at_ms        INTEGER NOT NULL,
  level        TEXT NOT NULL,
  text         TEXT NOT NULL,
  PRIMARY KEY (execution_id, number)
) WITHOUT ROWID;

-- What happens in this home, for whoever watches. Old ones go.
CREATE TABLE event (
  event_id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms    INTEGER NOT NULL,
  kind     TEXT NOT NULL,
  data     TEXT NOT NULL                      -- JSON
);

-- The services of this home, and how they are.
CREATE TABLE service (
  service_id TEXT PRIMARY KEY,
  machine    TEXT NOT NULL,
  pid        INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  seen_ms    INTEGER NOT NULL,
  beats      INTEGER NOT NULL DEFAULT 0,
  scheduler  INTEGER NOT NULL,                -- 1: it runs jobs
  executions INTEGER NOT NULL,                -- how many at once
  poll_s     REAL NOT NULL
);

CREATE TABLE tally (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
);

-- Answers to requests that must not be carried out twice.
CREATE TABLE answered (
  key        TEXT NOT NULL,
  request    BLOB NOT NULL,                   -- digest of method, path and body
  status     INTEGER,                         -- NULL: still being carried out
  body       TEXT,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (key)
);

CREATE TABLE revoked (
  token_id TEXT PRIMARY KEY,
  until_ms INTEGER NOT NULL
);

-- Codes of one-time links, as digests.
CREATE TABLE login (
  code     BLOB PRIMARY KEY,
  until_ms INTEGER NOT NULL
);

-- Messages to others, each until it has arrived at one address or nobody tries any more.
CREATE TABLE delivery (
  delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id    TEXT NOT NULL,                  -- the same for every address and every try
  crawl_id    TEXT NOT NULL,
  job_id      TEXT,
  address     TEXT NOT NULL,                  -- whole; shown only masked
  secret_file TEXT NOT NULL,                  -- where the secret is that it is signed with; empty: the usual one
  body        BLOB NOT NULL,
  title       TEXT NOT NULL,
  text        TEXT NOT NULL,
  guarded     INTEGER NOT NULL DEFAULT 0,     -- 1: never to a private address
  state       TEXT NOT NULL,                  -- promised, waiting, delivered, failed
  tries       INTEGER NOT NULL DEFAULT 0,
  due_ms      INTEGER NOT NULL,
  claimed     TEXT NOT NULL DEFAULT '',       -- who is sending it
  claimed_ms  INTEGER,
  created_ms  INTEGER NOT NULL,
  settled_ms  INTEGER,
  UNIQUE (event_id, address)
);
CREATE INDEX delivery_due ON delivery (due_ms) WHERE state = 'waiting';
CREATE INDEX delivery_settled ON delivery (settled_ms) WHERE settled_ms IS NOT NULL;
CREATE INDEX delivery_state ON delivery (state, delivery_id);
CREATE INDEX delivery_crawl ON delivery (crawl_id, delivery_id);

CREATE TABLE delivery_try (
  delivery_id INTEGER NOT NULL,
  number      INTEGER NOT NULL,
  at_ms       INTEGER NOT NULL,
  status      INTEGER NOT NULL,               -- 0: no answer
  trouble     TEXT NOT NULL,
  PRIMARY KEY (delivery_id, number)
) WITHOUT ROWID;
