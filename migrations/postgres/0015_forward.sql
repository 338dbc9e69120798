-- What the project forwards to another collector (SavedForward), with its headers sealed.
ALTER TABLE projects ADD COLUMN forward TEXT NOT NULL DEFAULT '{}';
