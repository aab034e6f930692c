-- A crawl that was worked on has a record. Should that be missing, it is not to be taken for one that never started.
ALTER TABLE crawl ADD COLUMN started INTEGER NOT NULL DEFAULT 0;
