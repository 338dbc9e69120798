-- A row is merged about once: merges wait for more parts. A merge of 30 parts costs a row as much as one of 10, and the parts that come of it are
-- three times as large. ClickHouse lowers the base as the number of parts grows, so 60 means some 30 parts.

ALTER TABLE spans MODIFY SETTING merge_selector_base = 60;

ALTER TABLE frame_windows MODIFY SETTING merge_selector_base = 60;

ALTER TABLE janks MODIFY SETTING merge_selector_base = 60;

ALTER TABLE page_loads MODIFY SETTING merge_selector_base = 60;

ALTER TABLE app_starts MODIFY SETTING merge_selector_base = 60;

ALTER TABLE recompositions MODIFY SETTING merge_selector_base = 60;

ALTER TABLE metrics MODIFY SETTING merge_selector_base = 60;

ALTER TABLE sdk_health MODIFY SETTING merge_selector_base = 60;

ALTER TABLE traffic MODIFY SETTING merge_selector_base = 60;

ALTER TABLE batches MODIFY SETTING merge_selector_base = 60;
