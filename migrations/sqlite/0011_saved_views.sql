-- Pages with their filters, saved under a name for all people of a project.
CREATE TABLE saved_views (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    -- Path and query of a page of the web interface, without the project.
    address TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (project, name)
);
