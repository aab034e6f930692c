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
