-- Rows of one project may go earlier than those of others: its retention is shorter, or it has used up its room on the disk. An empty project:
-- the row speaks of all projects.
ALTER TABLE dropped_rows
    ADD COLUMN IF NOT EXISTS project LowCardinality(String) AFTER target;
