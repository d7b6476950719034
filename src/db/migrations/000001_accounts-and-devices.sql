-- Least writer: 0.1.0
-- Up Migration

-- Points in time are milliseconds in the program and timestamptz here.
create function ms_to_timestamp(ms bigint) returns timestamptz
  language sql immutable strict parallel safe
  return to_timestamp(ms / 1000.0);

create table account (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  email text not null,
  password_hash text not null,
  name text,
  apn jsonb not null default '[]',
  created_at timestamptz not null default now()
);
-- Specification 4.2: 409. E-mail addresses are compared case-insensitively.
create unique index account_email on account (lower(email));

create table purpose (
  id uuid primary key default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  name text not null default '',
  body json not null,
  created_at timestamptz not null default now()
);
create index purpose_account on purpose (account_id, created_at, id);

create table device (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  connector_id integer not null,
  configuration json not null,
  configured_at timestamptz not null default now(),
  -- device.name of the configuration: a list of devices need not read all of it.
  name text not null default '',
  -- The token is derived from the uuid and this number, never stored.
  token_version integer not null default 1,
  -- Until the new token is first used the one before it still opens the door.
  previous_token_accepted boolean not null default false,
  created_at timestamptz not null default now()
);
create index device_account on device (account_id, created_at, id);

-- Whose events and measurements are still to be cleared: whoever removes a device, and be it by
-- removing its account, leaves this note in the same transaction.
create table removed_device (
  device_id bigint primary key,
  removed_at timestamptz not null default now()
);
create function note_removed_devices() returns trigger language plpgsql as $$
begin
  insert into removed_device (device_id) select id from removed on conflict do nothing;
  return null;
end $$;
create trigger note_removed_devices after delete on device
  referencing old table as removed
  for each statement execute function note_removed_devices();

-- What is known of a device's connections; written now and then, never on a message's way.
create table presence (
  device_id bigint primary key references device on delete cascade,
  connector_id integer,
  connected boolean not null default false,
  last_seen_at timestamptz
);

-- A profile as installed: its purposes are a copy, later changes of a stored purpose do not touch it.
create table profile (
  id uuid primary key default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  purposes json not null,
  created_at timestamptz not null default now()
);

create table device_profile (
  device_id bigint not null references device on delete cascade,
  profile_id uuid not null references profile on delete cascade,
  state text not null default 'pending'
    check (state in ('pending', 'sent', 'current', 'rejected', 'superseded', 'replaced')),
  engine text not null default 'service' check (engine in ('service', 'device')),
  answer_text text,
  changed_at timestamptz not null default now(),
  -- When the device first acknowledged it; null for one that became current unasked.
  delivered_at timestamptz,
  primary key (device_id, profile_id)
);
create unique index device_profile_current on device_profile (device_id) where state = 'current';
create unique index device_profile_pending on device_profile (device_id) where state in ('pending', 'sent');
create index device_profile_profile on device_profile (profile_id);

-- Where a device stands. One narrow row, rewritten whenever its evidence changes: it has no index but
-- its key, and room on its page, so that such an update touches nothing else (HOT).
create table device_state (
  device_id bigint primary key references device on delete cascade,
  -- Raised by whoever changes something that a message's evaluation depends on: this row, the
  -- configuration, the profiles. A transaction that was computed from an older version is redone.
  version bigint not null default 1,
  pu_id integer not null default 0,
  st_id integer not null default 0,
  state_at timestamptz not null default now(),
  -- The newest state the device itself reported since its profile became current: an older one, or
  -- the same once more, changes nothing.
  reported_at timestamptz,
  reported_pu_id integer,
  reported_st_id integer,
  -- A device that asked for profiles once answers for itself; one that never did is a plain sensor.
  answers_profiles boolean not null default false,
  -- Evidence the purpose engine has collected: plain JSON, versioned in itself.
  runtime json
) with (fillfactor = 50);

create table rejection (
  device_id bigint not null references device on delete cascade,
  -- The message's own identifier and the item's place: a retried transaction adds nothing.
  message_id uuid not null,
  item integer not null,
  rejected_at timestamptz not null,
  topic text not null,
  reason text not null,
  message text not null,
  path text,
  payload text not null
);
create unique index rejection_key on rejection (device_id, message_id, item, coalesce(path, ''));
create index rejection_newest on rejection (device_id, rejected_at desc);

create table account_event (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  ts timestamptz not null default now(),
  event text not null
);
create index account_event_newest on account_event (account_id, ts desc, id desc);

-- Down Migration
drop table account_event, rejection, device_state, device_profile, profile, presence, device, removed_device, purpose, account;
drop function note_removed_devices;
drop function ms_to_timestamp;
