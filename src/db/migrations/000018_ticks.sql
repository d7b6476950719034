-- Least writer: 0.2.0
-- Up Migration

-- When the engine wants to be called for a device without a message of it. A table of its own: an index on
-- `device_state` would end its cheap updates (HOT). A row is written, moved and removed only by a transaction
-- that changes the device's row in `device_state`.
create table device_due (
  device_id bigint primary key references device_state on delete cascade,
  account_id bigint not null,
  due_at timestamptz not null,
  -- A tick that could not be stored: when it is tried again, and how often it failed in a row.
  retry_at timestamptz,
  failures smallint not null default 0
);
create index device_due_next on device_due (coalesce(retry_at, due_at));
-- While more is due than one look takes in: some of each account.
create index device_due_account on device_due (account_id, coalesce(retry_at, due_at));

-- The service's time: all processes run by this clock, and not by their machines' own.
create function service_now() returns timestamptz
  language sql volatile parallel safe
  return clock_timestamp();

-- When each connector last listened to its devices, as the processes that run it write every few seconds;
-- bridges that share the messages of a broker are one. Without a row it never did.
create table listening (
  connector_id integer primary key,
  heard_at timestamptz not null
);
-- When it did not.
create table listening_gap (
  connector_id integer not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  primary key (connector_id, from_at)
);
create index listening_gap_end on listening_gap (to_at);

-- Down Migration

drop table listening_gap, listening, device_due;
drop function service_now;
