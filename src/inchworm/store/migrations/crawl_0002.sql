-- Cookies: what servers asked a run to send back. Append-only, so that going back in the sequence is a deletion.

CREATE TABLE cookie (
  run_id     INTEGER NOT NULL,
  domain     TEXT NOT NULL,
  path       TEXT NOT NULL,
  name       TEXT NOT NULL,
  host_only  INTEGER NOT NULL,
  seq        INTEGER NOT NULL,           -- the visit that brought it; the newest one counts
  value      TEXT NOT NULL,
  secure     INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,           -- 0: with the run
  PRIMARY KEY (run_id, domain, path, name, host_only, seq)
) WITHOUT ROWID;
