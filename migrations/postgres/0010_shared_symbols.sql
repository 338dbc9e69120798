-- The build id of the file that has the part of the debug information that `dwz` moved away; empty if there is none.
ALTER TABLE symbol_builds ADD COLUMN needs TEXT NOT NULL DEFAULT '';
CREATE INDEX symbol_builds_by_needs ON symbol_builds (project, needs);
