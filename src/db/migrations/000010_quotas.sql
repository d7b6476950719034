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
-- row, locked before anything else of its account, but for the lock that removals take (`ingestLock`).
create table account_usage (
  account_id bigint primary key references account on delete cascade,
  devices bigint not null default 0,
  -- Registrations on that day, UTC.
  registrations_day date not null default '-infinity',
  registrations bigint not null default 0,
  purposes bigint not null default 0,
  purpose_bytes bigint not null default 0
) with (fillfactor = 50);

-- Of the purpose as JSON.
alter table purpose add column bytes integer not null default 0;
update purpose set bytes = octet_length(body::text);

insert into account_usage (account_id, devices, purposes, purpose_bytes)
select account.id, devices.count, purposes.count, purposes.bytes
  from account
 cross join lateral (select count(*) from device where account_id = account.id) as devices
 cross join lateral (
   select count(*), coalesce(sum(bytes), 0) as bytes
     from purpose where account_id = account.id) as purposes;

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
drop table account_usage, account_quota;
