-- Hosts that have answered, and those among them that cannot be reached any more. Whatever a run goes back to, that is
-- how they are.
CREATE TABLE origin (
  origin     TEXT PRIMARY KEY,           -- scheme, host and port
  down_since_ms INTEGER NOT NULL DEFAULT 0, -- since when it cannot be reached; 0: it can
  down_kind  TEXT NOT NULL DEFAULT '',
  down_message TEXT NOT NULL DEFAULT '',
  down_sessions INTEGER NOT NULL DEFAULT 0  -- in how many sessions that was seen
) WITHOUT ROWID;
INSERT OR IGNORE INTO origin (origin) SELECT origin FROM robots WHERE verdict IN ('rules', 'allow', 'refreshing');

ALTER TABLE session ADD COLUMN unanswered INTEGER NOT NULL DEFAULT 0; -- requests that could not be sent to a host that was down

-- What servers say of pages that cannot be there, by directory: what they say the same of is not there either.
CREATE TABLE probe (
  run_id     INTEGER NOT NULL,
  directory  TEXT NOT NULL,              -- up to its last slash
  seq        INTEGER NOT NULL,           -- the visit that asked first, in the order of record
  request_url TEXT NOT NULL,             -- what cannot be there
  status     INTEGER NOT NULL,
  is_excuse  INTEGER NOT NULL,           -- it says with status 200 that nothing is there
  text_hash  BLOB NOT NULL,
  payload    BLOB NOT NULL,
  size       INTEGER NOT NULL,
  file_id    INTEGER NOT NULL,
  "offset"   INTEGER NOT NULL,
  length     INTEGER NOT NULL,
  PRIMARY KEY (run_id, directory)
) WITHOUT ROWID;
-- The line: the runs that later ones build on. Branches lie beside it.
ALTER TABLE run ADD COLUMN follows INTEGER;                   -- run_id of the run before it on its line
ALTER TABLE run ADD COLUMN beside INTEGER NOT NULL DEFAULT 0; -- 1: a branch, or left behind when a branch became the line
ALTER TABLE run ADD COLUMN token INTEGER NOT NULL DEFAULT 0;  -- of the owner that made it
-- Until now a later run took a branch for the run before it.
UPDATE run SET beside = 1 WHERE origin IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM run later WHERE later.run_id > run.run_id AND later.origin IS NULL);
UPDATE run SET follows = (SELECT MAX(before.run_id) FROM run before
  WHERE before.run_id < CASE WHEN run.beside THEN run.horizon ELSE run.run_id END);
