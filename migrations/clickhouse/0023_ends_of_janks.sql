-- How a block of the main loop ended: `finished`, or `killed` with the process. Rows from before this column ended.
ALTER TABLE janks ADD COLUMN IF NOT EXISTS ended LowCardinality(String) DEFAULT 'finished' AFTER duration_ms;

-- Why a block has no stack; empty if it has one, or if the device does not say.
ALTER TABLE janks ADD COLUMN IF NOT EXISTS stack_missing String AFTER stack_hash;
