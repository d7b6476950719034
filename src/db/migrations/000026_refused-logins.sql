-- Least writer: 0.2.0
-- Up Migration

-- Whose device a uuid was: one that is removed and goes on trying to log in is its owner's to know of.
-- Kept for 30 days; how many there can be is bounded by the quota of registrations a day.
create table removed_uuid (
  uuid uuid primary key,
  account_id bigint not null references account on delete cascade,
  removed_at timestamptz not null default now()
);
create index removed_uuid_account on removed_uuid (account_id);
create index removed_uuid_removed on removed_uuid (removed_at);

-- Logins of devices that were refused, added up by reason and address; the newest 16 of a uuid are kept.
create table refused_login (
  uuid uuid not null,
  reason text collate "C" not null,
  address text collate "C" not null,
  account_id bigint not null references account on delete cascade,
  -- Null: the device was removed.
  device_id bigint references device on delete cascade,
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- The device was not let in since.
  is_open boolean not null,
  primary key (uuid, reason, address)
) with (fillfactor = 70);
create index refused_login_open on refused_login (account_id, device_id) include (last_at)
 where is_open and device_id is not null;
create index refused_login_device on refused_login (device_id);
create index refused_login_account on refused_login (account_id);
create index refused_login_last on refused_login (last_at);

-- The values that a rejection's message names.
alter table rejection add column details json;

-- Down Migration
alter table rejection drop column details;
drop table refused_login, removed_uuid;
