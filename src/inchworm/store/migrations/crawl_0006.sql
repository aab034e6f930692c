-- The line: the runs that later ones build on. Branches lie beside it.
ALTER TABLE run ADD COLUMN follows INTEGER;                   -- run_id of the run before it on its line
ALTER TABLE run ADD COLUMN beside INTEGER NOT NULL DEFAULT 0; -- 1: a branch, or left behind when a branch became the line
ALTER TABLE run ADD COLUMN token INTEGER NOT NULL DEFAULT 0;  -- of the owner that made it
-- Until now a later run took a branch for the run before it.
UPDATE run SET beside = 1 WHERE origin IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM run later WHERE later.run_id > run.run_id AND later.origin IS NULL);
UPDATE run SET follows = (SELECT MAX(before.run_id) FROM run before
  WHERE before.run_id < CASE WHEN run.beside THEN run.horizon ELSE run.run_id END);
