-- Pages of which a run does not tell any more, because it went back or is not part of the line any more. Whoever follows
-- the crawl by asking what changed may have them.
CREATE TABLE withdrawn (
  at_ms      INTEGER NOT NULL,           -- when that was
  run_id     INTEGER NOT NULL,
  url        TEXT NOT NULL,
  request_url TEXT NOT NULL
);
CREATE INDEX withdrawn_url ON withdrawn (url);
