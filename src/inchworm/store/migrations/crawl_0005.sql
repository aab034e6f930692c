-- What speaks for a URL, in a run that goes by a query: its link and its address, and the pages that link to it.
ALTER TABLE visit ADD COLUMN share INTEGER;  -- what each link gets of how well its page answers, per million
ALTER TABLE visit ADD COLUMN parts BLOB;     -- to how many places of its page each link leads, a byte each; none: one
ALTER TABLE run ADD COLUMN counted INTEGER NOT NULL DEFAULT 0; -- seq up to which votes are counted

CREATE TABLE promise (
  run_id     INTEGER NOT NULL,
  url_id     INTEGER NOT NULL,
  own        INTEGER NOT NULL,           -- what its link and its address promise
  first      INTEGER NOT NULL,           -- its rank before any vote was counted
  pages      INTEGER NOT NULL DEFAULT 0, -- the votes that are counted: how many, and what they add up to
  parts      INTEGER NOT NULL DEFAULT 0,
  share      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, url_id)
) WITHOUT ROWID;
