-- Which pages changed in the same way: they have this number in common.
ALTER TABLE visit ADD COLUMN alike INTEGER;
CREATE INDEX visit_alike ON visit (run_id, alike, seq) WHERE change = 'modified';
