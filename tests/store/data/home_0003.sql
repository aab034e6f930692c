BEGIN TRANSACTION;
CREATE TABLE answered (
  key        TEXT NOT NULL,
  request    BLOB NOT NULL,                   
  status     INTEGER,                         
  body       TEXT,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (key)
);
CREATE TABLE crawl (
  crawl_id   TEXT PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  seeds      TEXT NOT NULL,              
  seeds_key  TEXT NOT NULL,              
  settings   TEXT NOT NULL,              
  created_ms INTEGER NOT NULL
, defaults TEXT NOT NULL DEFAULT '{}', incremental INTEGER NOT NULL DEFAULT 1, enabled INTEGER NOT NULL DEFAULT 1, typed INTEGER NOT NULL DEFAULT 1, started INTEGER NOT NULL DEFAULT 0);
INSERT INTO "crawl" VALUES('6b40abca67','old','["http://127.0.0.1:8765/"]','http://127.0.0.1:8765/','{"delay": "0", "budget": "7", "checkpoint_every": "2"}',1795069584991,'{"delay": 0.0, "checkpoint_every": 2}',1,1,1,1);
CREATE TABLE delivery (
  delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id    TEXT NOT NULL,                  
  crawl_id    TEXT NOT NULL,
  job_id      TEXT,
  address     TEXT NOT NULL,                  
  secret_file TEXT NOT NULL,                  
  body        BLOB NOT NULL,
  title       TEXT NOT NULL,
  text        TEXT NOT NULL,
  guarded     INTEGER NOT NULL DEFAULT 0,     
  state       TEXT NOT NULL,                  
  tries       INTEGER NOT NULL DEFAULT 0,
  due_ms      INTEGER NOT NULL,
  claimed     TEXT NOT NULL DEFAULT '',       
  claimed_ms  INTEGER,
  created_ms  INTEGER NOT NULL,
  settled_ms  INTEGER,
  UNIQUE (event_id, address)
);
CREATE TABLE delivery_try (
  delivery_id INTEGER NOT NULL,
  number      INTEGER NOT NULL,
  at_ms       INTEGER NOT NULL,
  status      INTEGER NOT NULL,               
  trouble     TEXT NOT NULL,
  PRIMARY KEY (delivery_id, number)
) WITHOUT ROWID;
CREATE TABLE event (
  event_id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms    INTEGER NOT NULL,
  kind     TEXT NOT NULL,
  data     TEXT NOT NULL                      
);
INSERT INTO "event" VALUES(1,1795069585604,'job','{"job_id": "77fd9b1ae43e4ecfa26b4ed8574f99ca", "crawl_id": "6b40abca67", "state": "scheduled", "reason": ""}');
CREATE TABLE execution (
  execution_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id        TEXT NOT NULL,
  crawl_id      TEXT NOT NULL,
  number        INTEGER NOT NULL,
  occurrence_ms INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  state         TEXT NOT NULL,                
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
  progress      TEXT NOT NULL DEFAULT '{}',   
  error         TEXT NOT NULL DEFAULT '',
  trace         TEXT NOT NULL DEFAULT '',
  cpu_ms        INTEGER NOT NULL DEFAULT 0,
  memory_kb     INTEGER NOT NULL DEFAULT 0,
  UNIQUE (job_id, number),
  UNIQUE (job_id, occurrence_ms, attempt)
);
CREATE TABLE inbox (
  inbox_id   INTEGER PRIMARY KEY,
  crawl_id   TEXT NOT NULL,
  verb       TEXT NOT NULL,              
  argument   TEXT NOT NULL,              
  asked_ms   INTEGER NOT NULL,
  done_ms    INTEGER,
  answer     TEXT
);
CREATE TABLE job (
  job_id           TEXT PRIMARY KEY,
  crawl_id         TEXT NOT NULL,
  state            TEXT NOT NULL,
  task             TEXT NOT NULL,             
  interval_count   INTEGER,                   
  interval_unit    TEXT NOT NULL,
  schedule_enabled INTEGER NOT NULL,
  adaptive         INTEGER NOT NULL,
  unchanged        INTEGER NOT NULL DEFAULT 0,  
  max_retries      INTEGER NOT NULL,
  backoff_s        INTEGER NOT NULL,
  retries          INTEGER NOT NULL DEFAULT 0,  
  crashes          INTEGER NOT NULL DEFAULT 0,  
  occurrence_ms    INTEGER,                   
  due_ms           INTEGER,                   
  aside_ms         INTEGER,                   
  slot             INTEGER,
  moved_ms         INTEGER,
  lock_token       TEXT,
  beats            INTEGER NOT NULL DEFAULT 0,
  executions       INTEGER NOT NULL DEFAULT 0,  
  after_job_id     TEXT,
  repetition       TEXT,                      
  reason           TEXT NOT NULL DEFAULT '',  
  metadata         TEXT NOT NULL,
  created_ms       INTEGER NOT NULL,
  updated_ms       INTEGER NOT NULL,
  last_ms          INTEGER                    
);
INSERT INTO "job" VALUES('77fd9b1ae43e4ecfa26b4ed8574f99ca','6b40abca67','scheduled','{"verb": "crawl", "mode": "full", "checkpoint": null, "as_new_run": false, "validate": true, "settings": {"budget": 9}}',6,'hours',1,1,0,5,60,0,0,1795069585604,1795069585604,NULL,25,NULL,NULL,0,0,NULL,'{"max_iterations": 3, "stop_if_no_changes": true, "notify": [], "notify_on": "changes", "guarded": false}','','{}',1795069585604,1795069585604,NULL);
CREATE TABLE log_line (
  execution_id INTEGER NOT NULL,
  number       INTEGER NOT NULL,
  at_ms        INTEGER NOT NULL,
  level        TEXT NOT NULL,
  text         TEXT NOT NULL,
  PRIMARY KEY (execution_id, number)
) WITHOUT ROWID;
CREATE TABLE login (
  code     BLOB PRIMARY KEY,
  until_ms INTEGER NOT NULL
);
CREATE TABLE revoked (
  token_id TEXT PRIMARY KEY,
  until_ms INTEGER NOT NULL
);
CREATE TABLE service (
  service_id TEXT PRIMARY KEY,
  machine    TEXT NOT NULL,
  pid        INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  seen_ms    INTEGER NOT NULL,
  beats      INTEGER NOT NULL DEFAULT 0,
  scheduler  INTEGER NOT NULL,                
  executions INTEGER NOT NULL,                
  poll_s     REAL NOT NULL
);
CREATE TABLE slot (
  slot INTEGER PRIMARY KEY,
  jobs INTEGER NOT NULL
);
INSERT INTO "slot" VALUES(25,1);
CREATE TABLE tally (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
);
CREATE INDEX crawl_seeds ON crawl (seeds_key);
CREATE INDEX inbox_open ON inbox (crawl_id) WHERE done_ms IS NULL;
CREATE INDEX job_due ON job (due_ms) WHERE due_ms IS NOT NULL AND lock_token IS NULL;
CREATE INDEX job_locked ON job (crawl_id) WHERE lock_token IS NOT NULL;
CREATE INDEX job_crawl ON job (crawl_id);
CREATE INDEX job_state ON job (state, job_id);
CREATE INDEX job_slot ON job (slot, due_ms) WHERE slot IS NOT NULL;
CREATE INDEX job_after ON job (after_job_id) WHERE after_job_id IS NOT NULL;
CREATE INDEX job_created ON job (created_ms, job_id);
CREATE INDEX job_next ON job (COALESCE(due_ms, 9007199254740991 - created_ms), job_id);
CREATE INDEX execution_running ON execution (service_id) WHERE state = 'running';
CREATE INDEX execution_started ON execution (started_ms);
CREATE INDEX execution_ended ON execution (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX delivery_due ON delivery (due_ms) WHERE state = 'waiting';
CREATE INDEX delivery_settled ON delivery (settled_ms) WHERE settled_ms IS NOT NULL;
CREATE INDEX delivery_state ON delivery (state, delivery_id);
CREATE INDEX delivery_crawl ON delivery (crawl_id, delivery_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',1);
COMMIT;
PRAGMA user_version = 3;
