-- Measurements. Only ingest writes them. On TimescaleDB they are in a hypertable with an hourly aggregate (11-history).

-- One row per series: one sense of one device that has measured something. It finds a sense's measurements without
-- reading all of them.
create table series (
  device_id bigint not null,
  s_id text collate "C" not null,
  id bigint generated always as identity unique,
  primary key (device_id, s_id)
);

-- One row per point of a series. It refers to its series instead of device and sense, and its key omits the value. With
-- keys of 16 bytes PostgreSQL fills the pages of a B-tree that grows at the end of many ranges. With longer keys it
-- splits pages in the middle, and leaves them half empty (nbtsplitloc.c, _bt_afternewitemoff).
create table measurement (
  series_id bigint not null,
  -- Whole milliseconds. Values with the same millisecond differ in microseconds, in order of arrival; the first has
  -- none.
  ts timestamptz not null,
  -- A position has its latitude here and its longitude in `long`. A number has NaN there, because compressed chunks
  -- should not contain NULL.
  val double precision not null,
  long double precision not null default 'NaN'
);
-- The only index. It detects a redelivery and, read backwards, finds a series' newest points.
create unique index measurement_key on measurement (series_id, ts);
