-- Checkpoints: positions in the sequence of a run that one can go back to.
-- From here on `seq` numbers every step of a run: visits, refusals in turn, and orders such as a retry.

CREATE TABLE checkpoint (
  number     INTEGER PRIMARY KEY,        -- counted over all runs of the crawl, from 0
  run_id     INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  type       TEXT NOT NULL,              -- auto, manual, pause, error
  state      TEXT NOT NULL,              -- crawling, or the state in which the run had ended
  substate   TEXT NOT NULL,              -- seeding, sitemaps, downloading_pages, finishing
  created_ms INTEGER NOT NULL,
  totals     TEXT NOT NULL,              -- JSON: the run's counters, and since when its order is disturbed
  deleted    INTEGER NOT NULL DEFAULT 0  -- its number is not given again
);
CREATE INDEX checkpoint_seq ON checkpoint (run_id, seq);

-- What was found or settled after a position; both grow at their end only.
CREATE INDEX frontier_found ON frontier (run_id, found);
CREATE INDEX frontier_done ON frontier (run_id, done) WHERE done IS NOT NULL;

ALTER TABLE lane ADD COLUMN opened INTEGER NOT NULL DEFAULT 0; -- seq of its first row

-- Where a run that continues another one branched off.
ALTER TABLE run ADD COLUMN origin INTEGER;
ALTER TABLE run ADD COLUMN origin_seq INTEGER;

CREATE INDEX visit_alternate ON visit (run_id, text_hash) WHERE outcome = 'duplicate';

-- What changed since earlier runs.
ALTER TABLE visit ADD COLUMN change TEXT;      -- new, modified, unchanged, deleted, unknown; none in a baseline
ALTER TABLE visit ADD COLUMN note TEXT;        -- words that say more of it
ALTER TABLE visit ADD COLUMN link_hash BLOB;   -- of the links in the main part, as they are written
ALTER TABLE visit ADD COLUMN differences TEXT; -- JSON: what differs from the last version, should it turn out to be stamps
ALTER TABLE visit ADD COLUMN missing INTEGER NOT NULL DEFAULT 0; -- for how many runs it has been gone
ALTER TABLE frontier ADD COLUMN unlinked INTEGER NOT NULL DEFAULT 0; -- for how many runs no page has led to it
ALTER TABLE frontier ADD COLUMN rank INTEGER; -- where the order goes by rank: the highest first
CREATE INDEX frontier_ranked ON frontier (run_id, lane, rank DESC, place_seq, place_idx)
  WHERE state = 'pending' AND rank IS NOT NULL;
ALTER TABLE run ADD COLUMN "new" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN modified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN unknown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;     -- bytes that did not have to be downloaded again
ALTER TABLE run ADD COLUMN horizon INTEGER NOT NULL DEFAULT 0;   -- runs with a smaller run_id are earlier than this one
ALTER TABLE run ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;     -- seq at which known pages that were not reached were entered
ALTER TABLE run ADD COLUMN concluded INTEGER NOT NULL DEFAULT 0; -- seq at which it was decided what had changed
ALTER TABLE run ADD COLUMN alarm TEXT NOT NULL DEFAULT '';       -- what nobody should overlook
UPDATE run SET horizon = run_id;

CREATE TABLE distrust (                  -- validators that say nothing, by host
  run_id     INTEGER NOT NULL,
  host_id    INTEGER NOT NULL,           -- the lane; 0 in strict order: all hosts
  validator  TEXT NOT NULL,              -- etag, last_modified
  seq        INTEGER NOT NULL,           -- 0: found out before the run began; else it counts for later runs
  why        TEXT NOT NULL,              -- shared, lies, useless
  PRIMARY KEY (run_id, host_id, validator)
) WITHOUT ROWID;
