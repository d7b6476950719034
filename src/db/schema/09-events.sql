-- Events, and the feed that live streams read.

-- The order in which events and alarm changes were stored, within a transaction.
create sequence event_seq cache 32;

-- One row per event: of a sense (a condition was met) or of a device (its state changed).
create table event (
  device_id bigint not null,
  type text collate "C" not null check (type in ('device', 'sense')),
  ts timestamptz not null,
  -- A reported event has the same key when it is delivered again.
  key text collate "C" not null,
  seq bigint not null default nextval('event_seq'),
  -- The transaction that stored it: a stream resumes after the transactions that it has sent.
  xact xid8 not null default pg_current_xact_id(),
  -- The event without its type and time.
  body json not null
);
create unique index event_key on event (device_id, type, ts, key);

-- One row per sense of a sense event, so that the filter by sense reads only what it returns. It includes the body,
-- because looking up ten of them in a columnstore would cost as much as ten pages.
create table event_sense (
  device_id bigint not null,
  s_id text collate "C" not null,
  ts timestamptz not null,
  key text collate "C" not null,
  seq bigint not null,
  body json not null
);
create unique index event_sense_key on event_sense (device_id, s_id, ts, key);

-- One row per event of the last 24 hours, in the order of storing, for live streams.
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
