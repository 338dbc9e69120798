-- Text that is compared or sorted has the collation "C": the same order as in SQLite, wherever the cluster was made.
-- Who may do what, and what was configured by whom. ids are UUIDs as text, times microseconds since the Unix epoch, JSON is text.
-- Secrets stand here only as hashes, or sealed by whoever hands them in.

CREATE TABLE projects (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT NOT NULL,
    events_per_second BIGINT CHECK (events_per_second >= 0),
    bytes_per_day BIGINT CHECK (bytes_per_day >= 0),
    created_at BIGINT NOT NULL
);

CREATE TABLE users (
    id TEXT COLLATE "C" PRIMARY KEY,
    email TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password_hash TEXT,
    is_admin BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);

CREATE TABLE memberships (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    PRIMARY KEY (user_id, project)
);
CREATE INDEX memberships_by_project ON memberships (project);

CREATE TABLE invitations (
    token_hash BYTEA PRIMARY KEY CHECK (length(token_hash) = 32),
    purpose TEXT NOT NULL CHECK (purpose IN ('setup', 'invite', 'reset')),
    user_id TEXT COLLATE "C" REFERENCES users (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);

-- A row is one refresh token. All tokens that came of one login have the same family.
CREATE TABLE sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    family TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    token_hash BYTEA NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    rotated_to TEXT COLLATE "C"
);
CREATE INDEX sessions_by_family ON sessions (family);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE ingest_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    app_ids TEXT,
    events_per_second BIGINT CHECK (events_per_second >= 0),
    bytes_per_day BIGINT CHECK (bytes_per_day >= 0),
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX ingest_keys_by_project ON ingest_keys (project);

CREATE TABLE device_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    algorithm TEXT NOT NULL CHECK (algorithm IN ('HS256', 'ES256', 'EdDSA', 'JWKS')),
    material TEXT NOT NULL,
    audience TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX device_keys_by_project ON device_keys (project);

CREATE TABLE api_tokens (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" REFERENCES projects (id),
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_tokens_by_project ON api_tokens (project);

-- Rows of these two never change: a new revision is a new row.
CREATE TABLE configurations (
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    revision BIGINT NOT NULL CHECK (revision > 0),
    document TEXT NOT NULL,
    note TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project, revision)
);

CREATE TABLE rule_sets (
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    revision BIGINT NOT NULL CHECK (revision > 0),
    document TEXT NOT NULL,
    note TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project, revision)
);

-- No references: what was done stays on record whatever becomes of its subject.
CREATE TABLE audit (
    id TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    actor_kind TEXT NOT NULL CHECK (actor_kind IN ('user', 'token', 'cli', 'system')),
    project TEXT COLLATE "C",
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (at, id);
CREATE INDEX audit_by_project ON audit (project, at, id);
