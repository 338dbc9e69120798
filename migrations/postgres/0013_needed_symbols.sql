-- When a sweep found that stored stacks need the file. It is no use of the file.
ALTER TABLE symbol_files ADD COLUMN needed_at BIGINT;
