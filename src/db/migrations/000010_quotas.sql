-- Least writer: 0.2.0
-- Up Migration

-- Where one account's quota differs from the configuration's.
create table account_quota (
  account_id bigint not null references account on delete cascade,
  quota text not null,
  value bigint not null check (value > 0),
  primary key (account_id, quota)
);

-- How many of its things an account has stored. Counted by the statement that stores them, under the
-- quota's condition: whoever counts rows instead counts what others have not committed yet. One narrow
-- row, locked before anything else of its account.
create table account_usage (
  account_id bigint primary key references account on delete cascade,
  devices bigint not null default 0,
  -- Registrations on that day, UTC.
  registrations_day date not null default '-infinity',
  registrations bigint not null default 0,
  purposes bigint not null default 0,
  purpose_bytes bigint not null default 0,
  -- Of `profile_content`.
  profiles bigint not null default 0,
  profile_bytes bigint not null default 0
) with (fillfactor = 50);

-- Of the purpose as JSON.
alter table purpose add column bytes integer not null default 0;
update purpose set bytes = octet_length(body::text);

-- What profiles say: once for all profiles of an account that say the same, and only as long as a device
-- has one of them as current, pending or sent. Then it is removed; how far the roll-out came stays.
create table profile_content (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  -- SHA-256 of the JSON.
  hash bytea not null,
  bytes integer not null,
  purposes json not null,
  unique (account_id, hash)
);
alter table profile add column content_id bigint references profile_content on delete set null;
insert into profile_content (account_id, hash, bytes, purposes)
select distinct on (p.account_id, h.hash) p.account_id, h.hash, octet_length(p.purposes::text), p.purposes
  from profile p
 cross join lateral (select sha256(convert_to(p.purposes::text, 'UTF8')) as hash) as h
 where exists (
   select from device_profile d
    where d.profile_id = p.id and d.state in ('current', 'pending', 'sent'))
 order by p.account_id, h.hash;
update profile p
   set content_id = c.id
  from profile_content c
 where c.account_id = p.account_id
   and c.hash = sha256(convert_to(p.purposes::text, 'UTF8'));
alter table profile drop column purposes;
create index profile_content_id on profile (content_id);

insert into account_usage
  (account_id, devices, purposes, purpose_bytes, profiles, profile_bytes)
select account.id, devices.count, purposes.count, purposes.bytes, profiles.count, profiles.bytes
  from account
 cross join lateral (select count(*) from device where account_id = account.id) as devices
 cross join lateral (
   select count(*), coalesce(sum(bytes), 0) as bytes
     from purpose where account_id = account.id) as purposes
 cross join lateral (
   select count(*), coalesce(sum(bytes), 0) as bytes
     from profile_content where account_id = account.id) as profiles;

-- What accounts' devices sent and gave rise to, by day (UTC). Each process counts in a row of its own, and
-- writes it every few seconds; rows of days that are over become one.
create table account_activity (
  account_id bigint not null references account on delete cascade,
  day date not null,
  process uuid not null,
  measurements bigint not null,
  events bigint not null,
  -- Events beyond the quota of the day, which were not recorded.
  events_left_out bigint not null,
  primary key (account_id, day, process)
) with (fillfactor = 50);

-- However they are removed: with their account nothing is left to count.
create function count_removed_devices() returns trigger language plpgsql as $$
begin
  update account_usage u
     set devices = greatest(0, u.devices - r.count)
    from (select account_id, count(*) from removed group by account_id) as r
   where u.account_id = r.account_id;
  return null;
end $$;
create trigger count_removed_devices after delete on device
  referencing old table as removed
  for each statement execute function count_removed_devices();

create function count_removed_purposes() returns trigger language plpgsql as $$
begin
  update account_usage u
     set purposes = greatest(0, u.purposes - r.count),
         purpose_bytes = greatest(0, u.purpose_bytes - r.bytes)
    from (select account_id, count(*), sum(bytes) as bytes from removed group by account_id) as r
   where u.account_id = r.account_id;
  return null;
end $$;
create trigger count_removed_purposes after delete on purpose
  referencing old table as removed
  for each statement execute function count_removed_purposes();

-- Down Migration
drop trigger count_removed_devices on device;
drop trigger count_removed_purposes on purpose;
drop function count_removed_devices;
drop function count_removed_purposes;
alter table purpose drop column bytes;
alter table profile add column purposes json;
update profile p set purposes = c.purposes from profile_content c where c.id = p.content_id;
update profile set purposes = '[]' where purposes is null;
alter table profile alter column purposes set not null, drop column content_id;
drop table profile_content;
drop table account_activity, account_usage, account_quota;
