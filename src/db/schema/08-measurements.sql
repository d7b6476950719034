-- Measurements. Ingest writes all of it; on TimescaleDB points are in a hypertable, with an hourly aggregate (11-history).

-- A row a series: one sense of one device that ever measured something. What a sense has stored is found by it without
-- reading all of it.
create table series (
  device_id bigint not null,
  s_id text collate "C" not null,
  id bigint generated always as identity unique,
  primary key (device_id, s_id)
);

-- A row a point of a series. It names its series, not device and sense, and its key does without the value: at 16 bytes
-- PostgreSQL fills the pages of a B-tree that grows at the end of each of many stretches; those of a longer key it
-- splits in the middle, and leaves half empty (nbtsplitloc.c, _bt_afternewitemoff).
create table measurement (
  series_id bigint not null,
  -- Whole milliseconds. Values that share one are told apart by microseconds, in the order in which they came; the first
  -- has none.
  ts timestamptz not null,
  -- A position has its latitude here and its longitude in `long`; a number leaves that at NaN, as compressed chunks
  -- want no NULL.
  val double precision not null,
  long double precision not null default 'NaN'
);
-- The only index: it recognises a redelivery and, read backwards, gives a series' newest points.
create unique index measurement_key on measurement (series_id, ts);
