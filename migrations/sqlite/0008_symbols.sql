-- Symbol files: with them, the stacks of shipped apps become readable. The files themselves are in the symbol store.

-- Grows with each new file of the project.
ALTER TABLE projects ADD COLUMN symbols_revision BIGINT NOT NULL DEFAULT 0;
-- The stacks that wait for files up to this revision have been worked through.
ALTER TABLE projects ADD COLUMN symbols_repaired BIGINT NOT NULL DEFAULT 0;

CREATE TABLE symbol_files (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    -- The SHA-1 of the content, by which upload tools name it.
    checksum TEXT NOT NULL,
    -- The SHA-256 of the content: its name in the symbol store.
    content TEXT NOT NULL,
    name TEXT NOT NULL,
    bytes BIGINT NOT NULL CHECK (bytes >= 0),
    revision BIGINT NOT NULL,
    uploaded_at BIGINT NOT NULL,
    uploaded_by TEXT NOT NULL,
    -- To within a day.
    last_used_at BIGINT,
    UNIQUE (project, checksum)
);

-- The builds that a file belongs to, by each id that devices may send.
CREATE TABLE symbol_builds (
    file TEXT NOT NULL REFERENCES symbol_files (id) ON DELETE CASCADE,
    project TEXT NOT NULL,
    symbol_id TEXT NOT NULL,
    -- Whether this is the id to show; the others are aliases.
    is_main BOOLEAN NOT NULL,
    -- The place of the build in the file, from 0.
    place BIGINT NOT NULL,
    format TEXT NOT NULL,
    arch TEXT NOT NULL,
    name TEXT NOT NULL,
    has_functions BOOLEAN NOT NULL,
    has_lines BOOLEAN NOT NULL,
    PRIMARY KEY (file, symbol_id, place)
);
CREATE INDEX symbol_builds_by_id ON symbol_builds (project, symbol_id);

-- Where a token is valid: everywhere, or only for symbol files.
ALTER TABLE api_tokens ADD COLUMN scope TEXT NOT NULL DEFAULT 'all' CHECK (scope IN ('all', 'symbols'));

-- How frames link to source lines: a template of addresses, and rules for paths. JSON.
ALTER TABLE projects ADD COLUMN source_links TEXT NOT NULL DEFAULT '{}';
