-- Whether a run may have refused a URL because of nofollow, which another page's link may overrule: only then are the
-- rows of known URLs looked at again. For older runs that is not known, so they are taken to have.
ALTER TABLE run ADD COLUMN nofollow INTEGER NOT NULL DEFAULT 0;
UPDATE run SET nofollow = 1 WHERE refused > 0;

-- Cookies: what servers asked a run to send back. Append-only, so that going back in the sequence is a deletion.

CREATE TABLE cookie (
  run_id     INTEGER NOT NULL,
  domain     TEXT NOT NULL,
  path       TEXT NOT NULL,
  name       TEXT NOT NULL,
  host_only  INTEGER NOT NULL,
  seq        INTEGER NOT NULL,           -- the visit that brought it; the newest one counts
  idx        INTEGER NOT NULL,           -- which came first among those of one visit
  value      TEXT NOT NULL,
  secure     INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,           -- 0: with the run
  PRIMARY KEY (run_id, domain, path, name, host_only, seq)
) WITHOUT ROWID;
