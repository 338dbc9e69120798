-- When devices last sent or asked with the key, to within a minute.
ALTER TABLE ingest_keys ADD COLUMN last_used_at BIGINT;

-- Who made the link: it ends with its maker.
ALTER TABLE invitations ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
