-- How traces link to another system (TraceLinks).
ALTER TABLE projects ADD COLUMN trace_links TEXT NOT NULL DEFAULT '{}';
