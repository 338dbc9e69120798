-- What people decided about groups of janks. A group without a row is open.
CREATE TABLE handled_groups (
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    -- A 64-bit number as text.
    group_id TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'resolved', 'ignored')),
    -- A later version of this app brings the group back. Both are empty if the group is open.
    app_id TEXT NOT NULL,
    app_version TEXT NOT NULL,
    -- Grows with every change.
    revision BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (project, group_id)
);

CREATE TABLE group_comments (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    group_id TEXT COLLATE "C" NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX group_comments_by_group ON group_comments (project, group_id, created_at);
