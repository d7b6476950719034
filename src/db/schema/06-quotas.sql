-- Quotas: what an account may have, what it has, and what it uses per day.

-- One row per quota of an account that differs from the configuration's. The operator writes it (`npm run account`).
create table account_quota (
  account_id bigint not null references account on delete cascade,
  quota text not null,
  value bigint not null check (value > 0),
  primary key (account_id, quota)
);

-- One row per account: how many of its things are stored. The statement that stores them also counts them, on condition
-- of the quota; counting rows instead would miss uncommitted ones. The row is locked before anything else of its
-- account. It is narrow, so that an update stays on its page.
create table account_usage (
  account_id bigint primary key references account on delete cascade,
  devices bigint not null default 0,
  -- Registrations on that day (UTC).
  registrations_day date not null default '-infinity',
  registrations bigint not null default 0,
  purposes bigint not null default 0,
  purpose_bytes bigint not null default 0,
  -- Rows of `profile_content`, and their bytes.
  profiles bigint not null default 0,
  profile_bytes bigint not null default 0,
  -- The account is removed: a transaction that waited for this lock must add nothing.
  is_closed boolean not null default false
) with (fillfactor = 50);

-- Triggers count down however devices or purposes are deleted, even together with their account.
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

-- One row per account, day (UTC) and process: what its devices sent and caused. Each process updates its own row every
-- few seconds. After the day the rows are merged into one.
create table account_activity (
  account_id bigint not null references account on delete cascade,
  day date not null,
  process uuid not null,
  measurements bigint not null,
  events bigint not null,
  -- Events beyond the day's quota, which were not recorded.
  events_left_out bigint not null,
  primary key (account_id, day, process)
) with (fillfactor = 50);
