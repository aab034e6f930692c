-- Questions that people ask of a large run: what failed, by kind, and what changed. Few rows of a run are in them.

CREATE INDEX visit_failed ON visit (run_id, failure, seq) WHERE outcome = 'failed';
CREATE INDEX visit_changed ON visit (run_id, change, seq) WHERE change IN ('new', 'modified', 'deleted');
