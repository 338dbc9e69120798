-- How long a project's rows are kept, as JSON (`{"raw_days": 30}`; a value that is missing is that of the installation), how much room they may take on
-- the disk, and whether they take more than that.
ALTER TABLE projects ADD COLUMN retention TEXT NOT NULL DEFAULT '{}';
ALTER TABLE projects ADD COLUMN disk_bytes BIGINT CHECK (disk_bytes >= 0);
ALTER TABLE projects ADD COLUMN is_over_disk_quota BOOLEAN NOT NULL DEFAULT FALSE;

-- Which texts are scrubbed before they are stored, as JSON.
ALTER TABLE projects ADD COLUMN scrubbing TEXT NOT NULL DEFAULT '{}';
