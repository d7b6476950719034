-- Up Migration

create table measurement (
  device_id bigint not null,
  s_id text not null,
  ts timestamptz not null,
  -- A position has its latitude in val and its longitude in long; a number leaves long at NaN. NULL
  -- would not do: every column of a unique key must be comparable, or a redelivery is stored twice.
  val double precision not null,
  long double precision not null default 'NaN'
);
create unique index measurement_key on measurement (device_id, s_id, ts desc, val, long);

create sequence event_seq;
create table event (
  device_id bigint not null,
  ts timestamptz not null,
  -- A reported event is recognised by its key when it is delivered again.
  key text not null,
  seq bigint not null default nextval('event_seq'),
  xact xid8 not null default pg_current_xact_id(),
  type text not null check (type in ('device', 'sense')),
  s_ids text[] not null,
  body json not null
);
create unique index event_key on event (device_id, ts desc, key);

do $$
begin
  if exists (select from pg_extension where extname = 'timescaledb') then
    perform create_hypertable('measurement', 'ts', chunk_time_interval => interval '1 day', create_default_indexes => false);
    perform create_hypertable('event', 'ts', chunk_time_interval => interval '7 days', create_default_indexes => false);
  end if;
end $$;

-- Down Migration
drop table event, measurement;
drop sequence event_seq;
