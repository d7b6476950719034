-- Least writer: 0.1.0
-- Up Migration

-- A key of 16 bytes. PostgreSQL fills the pages of a B-tree that grows at the end of each of many
-- stretches only where a key is no longer (nbtsplitloc.c, _bt_afternewitemoff); it splits those of a
-- longer one in the middle, and leaves them half empty. So a point does not name its device and sense
-- but their series, and its key does without the value.

-- What one sense of one device ever measured.
alter table measured_sense rename to series;
alter table series add column id bigint generated always as identity unique;
alter index measured_sense_pkey rename to series_pkey;

-- The columnstore's settings and the aggregate name the columns: all is made anew.
alter table measurement rename to measurement_before;
alter index measurement_key rename to measurement_before_key;
create table measurement (
  series_id bigint not null,
  -- Whole milliseconds; microseconds tell apart the values that share one, in the order in which they
  -- came. The first of them has none.
  ts timestamptz not null,
  -- A position has its latitude in val and its longitude in long; a number leaves long at NaN.
  val double precision not null,
  long double precision not null default 'NaN'
);
-- The only index: it recognises a redelivery and, read backwards, gives a series' newest first.
create unique index measurement_key on measurement (series_id, ts);

do $$
begin
  if to_regclass('measurement_hour') is null then
    return;
  end if;
  execute 'drop materialized view measurement_hour';

  perform create_hypertable('measurement', 'ts',
    chunk_time_interval => interval '1 day', create_default_indexes => false);
  execute $ddl$
    alter table measurement set (
      timescaledb.enable_columnstore,
      timescaledb.segmentby = 'series_id',
      timescaledb.orderby = 'ts desc')
  $ddl$;
  execute $ddl$ call add_columnstore_policy('measurement', after => interval '3 days') $ddl$;

  -- Buckets of whole hours, counted in UTC. Positions have no average. Sums are kept from
  -- overflowing: one absurd value would otherwise stop the aggregate for all devices.
  execute $ddl$
    create materialized view measurement_hour
      with (timescaledb.continuous, timescaledb.materialized_only = false,
            timescaledb.create_group_indexes = false) as
    select series_id,
           time_bucket(interval '1 hour', ts) as bucket,
           min(val) as min,
           max(val) as max,
           sum(greatest(least(val, 1e290), -1e290)) as sum,
           count(*) as count,
           last(val, ts) as last
      from measurement
     where long = 'NaN'
     group by series_id, time_bucket(interval '1 hour', ts)
      with no data
  $ddl$;
  execute $ddl$ create index measurement_hour_key on measurement_hour (series_id, bucket) $ddl$;
  -- What arrives late is seen once this has run: with a refresh itself, well within five minutes.
  perform add_continuous_aggregate_policy('measurement_hour',
    start_offset => null, end_offset => interval '1 hour', schedule_interval => interval '2 minutes');
end $$;

insert into measurement (series_id, ts, val, long)
select series.id,
       m.ts + (row_number() over (partition by m.device_id, m.s_id, m.ts order by m.val, m.long) - 1)
              * interval '1 microsecond',
       m.val, m.long
  from measurement_before m
  join series using (device_id, s_id);
drop table measurement_before;
