-- Least writer: 0.1.0
-- Up Migration

create table measurement (
  device_id bigint not null,
  s_id text collate "C" not null,
  ts timestamptz not null,
  -- A position has its latitude in val and its longitude in long; a number leaves long at NaN. NULL
  -- would not do: every column of a unique key must be comparable, or a redelivery is stored twice.
  val double precision not null,
  long double precision not null default 'NaN'
);
-- The only index: it recognises a redelivery and, read backwards, gives a sense's newest first.
create unique index measurement_key on measurement (device_id, s_id, ts, val, long);

-- The senses that ever measured something: what a sense once stored is found without reading it all.
create table measured_sense (
  device_id bigint not null,
  s_id text collate "C" not null,
  primary key (device_id, s_id)
);

create sequence event_seq cache 32;
create table event (
  device_id bigint not null,
  type text collate "C" not null check (type in ('device', 'sense')),
  ts timestamptz not null,
  -- A reported event is recognised by its key when it is delivered again.
  key text collate "C" not null,
  seq bigint not null default nextval('event_seq'),
  xact xid8 not null default pg_current_xact_id(),
  -- The event without its type and time.
  body json not null
);
create unique index event_key on event (device_id, type, ts, key);

-- Sense events again, by each sense that had a part: the filter by sense reads what it gives and no
-- more. The body is here too because ten look-ups in a columnstore cost as much as ten pages.
create table event_sense (
  device_id bigint not null,
  s_id text collate "C" not null,
  ts timestamptz not null,
  key text collate "C" not null,
  seq bigint not null,
  body json not null
);
create unique index event_sense_key on event_sense (device_id, s_id, ts, key);

-- The newest events in the order in which they were stored, for live streams: kept for a day or so.
create table event_feed (
  account_id bigint not null,
  recorded_at timestamptz not null default now(),
  xact xid8 not null default pg_current_xact_id(),
  seq bigint not null,
  device_id bigint not null,
  type text collate "C" not null,
  ts timestamptz not null,
  body json not null
);
create index event_feed_account on event_feed (account_id, xact, seq);

-- Down Migration
drop table event_feed, event_sense, event, measured_sense, measurement;
drop sequence event_seq;
