-- Least writer: 0.2.0
-- Up Migration

-- What people and programs told devices to do, and what the devices answered. In the order of `id`, each device is
-- handed its commands.
create table command (
  id bigint generated always as identity primary key,
  uuid uuid not null unique,
  -- The owner of the device; a removed device's commands go with the device.
  account_id bigint not null,
  device_id bigint not null references device on delete cascade,
  name text not null,
  -- JSON, as text: it is only passed on, and the database's parser has limits of its own.
  params text,
  reason text,
  state text not null default 'queued' check (
    state in ('queued', 'sent', 'accepted', 'running', 'done', 'failed', 'expired', 'cancelled')),
  -- Counts the changes of what follows, so that two transactions do not overwrite each other's.
  version integer not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  sent_at timestamptz,
  accepted_at timestamptz,
  running_at timestamptz,
  ended_at timestamptz,
  progress real,
  result text,
  answer_text text,
  -- What the device said after the end; JSON.
  late text,
  -- When it was last handed to a connector; null: since the device last subscribed, it was not.
  handed_at timestamptz,
  -- How often it was, since it was made. Above 0, the device may have it.
  handed integer not null default 0,
  -- What it takes: params, result and texts.
  bytes integer not null
);
create index command_device on command (device_id, id);
create index command_account on command (account_id, id);
create index command_bytes on command (account_id, bytes);
create index command_unended on command (device_id, id)
  where state in ('queued', 'sent', 'accepted', 'running');
create index command_open on command (expires_at)
  where state in ('queued', 'sent', 'accepted', 'running');
create index command_ended on command (ended_at) where ended_at is not null;

-- Commands of the day, as registrations are counted.
alter table account_usage add column commands_day date not null default '-infinity';
alter table account_usage add column commands integer not null default 0;

-- Down Migration

alter table account_usage drop column commands;
alter table account_usage drop column commands_day;
drop table command;
