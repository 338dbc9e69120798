-- What a project limits signal by signal, as JSON (`{"spans": 500}`, events a second), and whether devices must bring tokens.

ALTER TABLE projects ADD COLUMN signal_quotas TEXT NOT NULL DEFAULT '{}';
ALTER TABLE projects ADD COLUMN device_tokens TEXT NOT NULL DEFAULT 'optional' CHECK (device_tokens IN ('optional', 'required'));
