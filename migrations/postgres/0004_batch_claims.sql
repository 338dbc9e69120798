-- Batches that a server is storing now. A device may send one batch to two servers: only one of them stores it.

CREATE TABLE batch_claims (
    project TEXT COLLATE "C" NOT NULL,
    batch_id BYTEA NOT NULL,
    -- The ingest log that has the batch. NULL: the halves of the batch are stored instead.
    log_id BYTEA,
    claimed_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (project, batch_id)
);

CREATE INDEX batch_claims_by_log ON batch_claims (log_id) WHERE log_id IS NOT NULL;
CREATE INDEX batch_claims_of_halves ON batch_claims (claimed_at) WHERE log_id IS NULL;

-- When each ingest log last claimed batches.
CREATE TABLE claiming_logs (
    log_id BYTEA PRIMARY KEY,
    seen_at TIMESTAMPTZ NOT NULL
);
