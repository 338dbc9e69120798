-- The roll-up of traffic has a `source` of its own (which client made the requests), so 0011 added no column for the number of a mark.

ALTER TABLE traffic_daily ADD COLUMN IF NOT EXISTS mark SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));
