-- The person who works on the incident. Nobody is shown who may no longer see the project.
ALTER TABLE incidents ADD COLUMN assignee TEXT COLLATE "C" REFERENCES users (id);

CREATE TABLE incident_comments (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    incident TEXT COLLATE "C" NOT NULL REFERENCES incidents (id),
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX incident_comments_by_incident ON incident_comments (project, incident, created_at);
