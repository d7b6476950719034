-- How long measurements and events are kept, and how TimescaleDB stores them.

-- One row for measurements and one for events: for how many days they are kept, and to how many a shorter setting will
-- reduce that a day later. The hourly upkeep writes it. No row: nothing has been decided yet.
create table history_retention (
  what text primary key check (what in ('events', 'measurements')),
  -- Null: everything, because a version before 0.4.0 did not record how much.
  days integer check (days > 0),
  next_days integer check (next_days > 0),
  next_at timestamptz,
  check ((next_days is null) = (next_at is null))
);

-- On TimescaleDB the history is in hypertables. Its Apache build has neither columnstore nor policies nor aggregates:
-- there, and without the extension, the tables stay ordinary ones. Statements in `execute` would not even parse without
-- the extension.
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

  execute $ddl$
    alter table measurement set (
      timescaledb.enable_columnstore,
      timescaledb.segmentby = 'series_id',
      timescaledb.orderby = 'ts desc')
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

  -- One row per hour of a series, in UTC, computed by TimescaleDB. Positions have no average. Values are clamped so
  -- that sums cannot overflow: one absurd value would otherwise stop the aggregate for all devices.
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
  -- Late values appear once this has run: including the refresh itself, well within five minutes.
  perform add_continuous_aggregate_policy('measurement_hour',
    start_offset => null, end_offset => interval '1 hour', schedule_interval => interval '2 minutes');

  -- Only the owner of a hypertable may drop its chunks, and the service may run as a role that owns nothing
  -- (docs/starting.md). TimescaleDB's own retention policies would delete by the database's clock even when it is in
  -- doubt, so there are none. A policy that an earlier version created meanwhile is removed here.
  execute $ddl$
    create function drop_history_chunks(relation regclass, before timestamptz) returns integer
      language plpgsql volatile security definer
      set search_path = pg_catalog, pg_temp
      set lock_timeout = '2s'
    as $body$
    declare
      extension name := (select n.nspname
                           from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                          where e.extname = 'timescaledb');
      dropped integer;
    begin
      if not exists (select from pg_class
                      where oid = relation and pg_get_userbyid(relowner) = current_user
                        and relname in ('measurement', 'measurement_hour', 'event', 'event_sense')) then
        raise exception '% is no history of this service', relation using errcode = '42501';
      end if;
      execute format('select %I.remove_retention_policy($1, if_exists => true)', extension)
        using relation;
      if before = '-infinity' then
        return 0;
      end if;
      execute format('select count(*) from %I.drop_chunks($1, older_than => $2)', extension)
        into dropped using relation, before;
      return dropped;
    end
    $body$
  $ddl$;
  execute 'revoke all on function drop_history_chunks(regclass, timestamptz) from public';
end $$;
