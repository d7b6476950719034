-- Purposes, the profiles that consist of them, and which device has which profile.

-- One row per purpose that an account has stored for later installation.
create table purpose (
  id uuid primary key default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  name text not null default '',
  body json not null,
  -- The size of `body`, for the quota.
  bytes integer not null default 0,
  created_at timestamptz not null default now()
);
create index purpose_account on purpose (account_id, created_at, id);

-- One row per distinct content of an account's profiles. Its purposes are copies, so a later change of a stored purpose
-- does not affect it. Deleted when no device has a profile with this content as current, pending or sent.
create table profile_content (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  -- SHA-256 of `purposes`.
  hash bytea not null,
  bytes integer not null,
  purposes json not null,
  unique (account_id, hash)
);

-- One row per installed profile. It outlives its content, so that the roll-out can still be looked up.
create table profile (
  id uuid primary key default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  content_id bigint references profile_content on delete set null,
  created_at timestamptz not null default now()
);
-- Otherwise each step of removing an account would read all profiles.
create index profile_account on profile (account_id);
create index profile_content_id on profile (content_id);

-- One row per profile of a device, with its progress. Installing the profile inserts it; the device's answers update
-- it.
create table device_profile (
  device_id bigint not null references device on delete cascade,
  profile_id uuid not null references profile on delete cascade,
  state text not null default 'pending'
    check (state in ('pending', 'sent', 'current', 'rejected', 'superseded', 'replaced')),
  -- Who evaluates it: the service, or the device itself.
  engine text not null default 'service' check (engine in ('service', 'device')),
  -- The device's reason for rejecting it.
  answer_text text,
  changed_at timestamptz not null default now(),
  -- When the device first acknowledged it; null: it became current without an acknowledgement.
  delivered_at timestamptz,
  primary key (device_id, profile_id)
);
create unique index device_profile_current on device_profile (device_id) where state = 'current';
create unique index device_profile_pending on device_profile (device_id) where state in ('pending', 'sent');
create index device_profile_profile on device_profile (profile_id);
