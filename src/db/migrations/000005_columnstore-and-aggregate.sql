-- Least writer: 0.1.0
-- Up Migration

-- Whether the history lives in hypertables. The Apache build of TimescaleDB has neither columnstore
-- nor policies nor aggregates: there, and without the extension, the tables stay ordinary ones.
do $$
begin
  if not exists (select from pg_extension where extname = 'timescaledb')
     or current_setting('timescaledb.license') <> 'timescale' then
    return;
  end if;

  perform create_hypertable('measurement', 'ts',
    chunk_time_interval => interval '1 day', create_default_indexes => false);
  perform create_hypertable('event', 'ts',
    chunk_time_interval => interval '7 days', create_default_indexes => false);
  perform create_hypertable('event_sense', 'ts',
    chunk_time_interval => interval '7 days', create_default_indexes => false);

  -- Executed as text: without the extension these statements would not even parse.
  execute $ddl$
    alter table measurement set (
      timescaledb.enable_columnstore,
      timescaledb.segmentby = 'device_id, s_id',
      timescaledb.orderby = 'ts desc, val desc, long desc')
  $ddl$;
  execute $ddl$
    alter table event set (
      timescaledb.enable_columnstore,
      timescaledb.segmentby = 'device_id, type',
      timescaledb.orderby = 'ts desc, key desc')
  $ddl$;
  execute $ddl$
    alter table event_sense set (
      timescaledb.enable_columnstore,
      timescaledb.segmentby = 'device_id, s_id',
      timescaledb.orderby = 'ts desc, key desc')
  $ddl$;
  execute $ddl$ call add_columnstore_policy('measurement', after => interval '3 days') $ddl$;
  execute $ddl$ call add_columnstore_policy('event', after => interval '14 days') $ddl$;
  execute $ddl$ call add_columnstore_policy('event_sense', after => interval '14 days') $ddl$;

  -- Buckets of whole hours, counted in UTC. Positions have no average. Sums are kept from
  -- overflowing: one absurd value would otherwise stop the aggregate for all devices.
  execute $ddl$
    create materialized view measurement_hour
      with (timescaledb.continuous, timescaledb.materialized_only = false,
            timescaledb.create_group_indexes = false) as
    select device_id,
           s_id,
           time_bucket(interval '1 hour', ts) as bucket,
           min(val) as min,
           max(val) as max,
           sum(greatest(least(val, 1e290), -1e290)) as sum,
           count(*) as count,
           last(val, ts) as last
      from measurement
     where long = 'NaN'
     group by device_id, s_id, time_bucket(interval '1 hour', ts)
      with no data
  $ddl$;
  execute $ddl$
    create index measurement_hour_key on measurement_hour (device_id, s_id, bucket)
  $ddl$;
  -- What arrives late is seen once this has run: with a refresh itself, well within five minutes.
  perform add_continuous_aggregate_policy('measurement_hour',
    start_offset => null, end_offset => interval '1 hour', schedule_interval => interval '2 minutes');
end $$;

-- Down Migration
do $$
begin
  if to_regclass('measurement_hour') is not null then
    execute 'drop materialized view measurement_hour';
  end if;
end $$;
