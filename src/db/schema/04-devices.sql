-- Devices: what they are, how they log in, what was refused, and what remains when they are removed.

-- One row per device. Registration inserts it. A removed device stays without an account until its history is deleted;
-- lookups by account or uuid do not find it.
create table device (
  id bigint generated always as identity primary key,
  -- The device's name in MQTT and HTTP (deviceAuthUuid).
  uuid uuid not null unique default gen_random_uuid(),
  -- Null: the device is removed.
  account_id bigint references account on delete cascade,
  connector_id integer not null,
  -- The document that the account sent (specification section 2).
  configuration json not null,
  configured_at timestamptz not null default now(),
  -- device.name and device.serial of the configuration, so that lists and searches need not read all of it. The program
  -- writes the name, a trigger the serial.
  name text not null default '',
  serial text not null default '',
  -- API keys and contacts can be restricted to these.
  labels text[] not null default '{}',
  -- The token is computed from the uuid and this number, and is not stored.
  token_version integer not null default 1,
  -- Until the new token is first used, the previous one is accepted too.
  previous_token_accepted boolean not null default false,
  -- The secret behind the token that the device used last: the first 8 characters of its check value; '' if unknown.
  token_secret text not null default '',
  created_at timestamptz not null default now()
);
create index device_account on device (account_id, created_at, id);

-- A trigger, because versions before 0.4.0 also write configurations, and do not know the serial.
-- Its body stays to the letter, comments too, because the database keeps its text.
create function set_device_serial() returns trigger language plpgsql as $$
begin
  new.serial := coalesce(new.configuration->'device'->>'serial', '');
  return new;
exception when data_exception then
  -- A configuration may hold what no text can (U+0000): such a device is found by its name.
  new.serial := '';
  return new;
end $$;
create trigger set_device_serial before insert or update of configuration on device
  for each row execute function set_device_serial();

-- One row per removed device whose events and measurements must still be deleted. The transaction that deletes or
-- unlinks the device inserts it; the cleanup deletes the history, and then the row.
create table removed_device (
  device_id bigint primary key,
  removed_at timestamptz not null default now(),
  -- Its account; null if a version before 0.4.0 removed the device.
  account_id bigint
);
create function note_removed_devices() returns trigger language plpgsql as $$
begin
  insert into removed_device (device_id) select id from removed on conflict do nothing;
  return null;
end $$;
create trigger note_removed_devices after delete on device
  referencing old table as removed
  for each statement execute function note_removed_devices();

-- One row per device: the state of its connections. Connectors write it a little later, for many devices at once, and
-- never while a message waits.
create table presence (
  device_id bigint primary key references device on delete cascade,
  connector_id integer,
  connected boolean not null default false,
  last_seen_at timestamptz
);

-- One row per removed device with its account, so that the owner sees that the device still tries to log in. Kept for
-- 30 days. The quota of registrations per day bounds their number.
create table removed_uuid (
  uuid uuid primary key,
  account_id bigint not null references account on delete cascade,
  removed_at timestamptz not null default now(),
  -- The device's name; null: a version before 0.4.0 removed it.
  name text
);
create index removed_uuid_account on removed_uuid (account_id);
create index removed_uuid_removed on removed_uuid (removed_at);

-- One row per uuid, reason and address: how often a device's login was refused. The newest 16 of a uuid are kept.
create table refused_login (
  uuid uuid not null,
  reason text collate "C" not null,
  address text collate "C" not null,
  account_id bigint not null references account on delete cascade,
  -- Null: the device is removed.
  device_id bigint references device on delete cascade,
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- The device has not logged in since.
  is_open boolean not null,
  primary key (uuid, reason, address)
) with (fillfactor = 70);
create index refused_login_open on refused_login (account_id, device_id) include (last_at)
 where is_open and device_id is not null;
create index refused_login_removed on refused_login (account_id, last_at desc)
 where device_id is null;
create index refused_login_device on refused_login (device_id);
create index refused_login_account on refused_login (account_id);
create index refused_login_last on refused_login (last_at);

-- One row per refused item of a message, with the reason, for the device's owner. A few of one message are kept
-- individually; the others are counted in one more row.
create table rejection (
  device_id bigint not null references device on delete cascade,
  -- The message's own identifier and the item's index. A transaction that runs again adds nothing.
  message_id uuid not null,
  item integer not null,
  rejected_at timestamptz not null,
  topic text not null,
  reason text not null,
  message text not null,
  -- The values in `message`.
  details json,
  path text,
  payload text not null,
  -- How many more items of the same message were refused.
  more integer
) with (
  -- A flood of rejections is deleted as fast as it arrives. Vacuum before the table has grown large.
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000
);
create unique index rejection_key on rejection (device_id, message_id, item, coalesce(path, ''));
create index rejection_newest on rejection (device_id, rejected_at desc);

-- One row per device: how many rejections it has, and the bytes of their texts. No row: they were never counted, and
-- will be with the next one.
create table rejection_count (
  device_id bigint primary key references device on delete cascade,
  count bigint not null,
  bytes bigint not null
) with (fillfactor = 50);

-- One row per job: something that an account does with many devices at once. A process does it with some of them in one
-- transaction, which also advances `done`. The next process continues from there, so each device is done once.
create table job (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  -- The API key that started it; null: a session.
  key_id uuid,
  -- What to do with each device.
  action json not null,
  -- Only devices that have one of these labels; null: any device.
  labels text[],
  -- Who started it, for the audit trail.
  actor json not null,
  state text not null default 'running' check (state in ('running', 'done', 'stopped')),
  -- The devices in order; empty once the job has ended.
  devices uuid[] not null,
  total integer not null,
  done integer not null default 0,
  -- The first devices for which it failed, and how many more there are.
  failed json not null default '[]',
  failed_more integer not null default 0,
  created_at timestamptz not null,
  ended_at timestamptz,
  -- When a process last worked on it. The job that has waited longest is next.
  served_at timestamptz not null default '-infinity'
) with (fillfactor = 70);
create index job_account on job (account_id, id);
create index job_running on job (served_at, id) where state = 'running';
