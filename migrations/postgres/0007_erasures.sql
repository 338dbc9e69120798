-- Requests to erase what is stored of an install, of a user id, or of a whole project. The row is the receipt. It has no reference to the
-- project, because it outlives an erased project.

CREATE TABLE erasures (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('install', 'user', 'project')),
    -- The install id or user id. Empty for a project, and 30 days after the end.
    subject TEXT NOT NULL,
    requested_at BIGINT NOT NULL,
    requested_by TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done')),
    finished_at BIGINT,
    -- Erasures with the same pass are carried out together.
    pass TEXT,
    -- What was erased, as JSON.
    receipt TEXT NOT NULL,
    -- What a server needs to go on with the pass, as JSON.
    work TEXT NOT NULL
);
CREATE INDEX erasures_by_project ON erasures (project, requested_at);
CREATE INDEX erasures_by_state ON erasures (state, requested_at);
