-- Least writer: 0.2.0
-- Up Migration

-- Who installed it and why; null: nobody knows, or a rule of the service did.
alter table profile
  add column made_by text,
  add column made_session uuid,
  add column made_reason text,
  -- Of `former_profile_content`, once no device needs it.
  add column former_content_id bigint;

-- Which profile was in force on a device, from when to when; `until_at` is null while it is. A trigger writes it, and
-- keeps the newest 1,000 of a device; the upkeep removes what ended before the oldest events.
create table device_profile_span (
  device_id bigint not null references device on delete cascade,
  profile_id uuid not null references profile on delete cascade,
  from_at timestamptz not null,
  until_at timestamptz
);
create index device_profile_span_device on device_profile_span (device_id, from_at);
create index device_profile_span_profile on device_profile_span (profile_id);
create index device_profile_span_until on device_profile_span (until_at);
insert into device_profile_span (device_id, profile_id, from_at)
select device_id, profile_id, changed_at from device_profile where state = 'current';

create function keep_profile_span() returns trigger language plpgsql as $$
begin
  if old.state = 'current' then
    update device_profile_span
       set until_at = new.changed_at
     where device_id = new.device_id and profile_id = new.profile_id and until_at is null;
  end if;
  if new.state = 'current' then
    insert into device_profile_span (device_id, profile_id, from_at)
    values (new.device_id, new.profile_id, new.changed_at);
    delete from device_profile_span
     where device_id = new.device_id
       and from_at < (select from_at from device_profile_span
                       where device_id = new.device_id order by from_at desc offset 999 limit 1);
  end if;
  return null;
end $$;
-- Only of updates: each profile is pending at first, and a copy that is loaded brings its spans along.
create trigger keep_profile_span after update of state on device_profile
  for each row when (old.state <> new.state and 'current' in (old.state, new.state))
  execute function keep_profile_span();

-- The contents of profiles that no device needs any more, so that the past can be read. They count in no quota: an
-- account keeps the newest 16 MiB, for as long as events.
create table former_profile_content (
  id bigint primary key,
  account_id bigint not null references account on delete cascade,
  bytes integer not null,
  purposes json not null,
  ended_at timestamptz not null
);
create index former_profile_content_account on former_profile_content (account_id, ended_at, id);
create index former_profile_content_ended on former_profile_content (ended_at);

-- Before, because afterwards no profile names the content any more; the trimming is done once, after all of them.
create function keep_former_content() returns trigger language plpgsql as $$
begin
  -- Only what was in force somewhere is kept, and nothing of an account that is being deleted.
  if exists (select from account where id = old.account_id and removed_at is null) and exists (
    select from profile p join device_profile_span s on s.profile_id = p.id where p.content_id = old.id
  ) then
    insert into former_profile_content (id, account_id, bytes, purposes, ended_at)
    values (old.id, old.account_id, old.bytes, old.purposes, now());
    update profile set former_content_id = old.id where content_id = old.id;
  end if;
  return old;
end $$;
create trigger keep_former_content before delete on profile_content
  for each row execute function keep_former_content();

create function trim_former_contents() returns trigger language plpgsql as $$
begin
  delete from former_profile_content
   where id in (
     select id from (
       select f.id, sum(f.bytes) over (partition by f.account_id order by f.ended_at desc, f.id desc) as bytes_to_here,
              row_number() over (partition by f.account_id order by f.ended_at desc, f.id desc) as nth
         from former_profile_content f
        where f.account_id in (select account_id from removed)
     ) as placed
     where nth > 1 and bytes_to_here > 16777216);
  return null;
end $$;
create trigger trim_former_contents after delete on profile_content
  referencing old table as removed
  for each statement execute function trim_former_contents();

-- Down Migration

drop trigger trim_former_contents on profile_content;
drop trigger keep_former_content on profile_content;
drop function trim_former_contents();
drop function keep_former_content();
drop table former_profile_content;
drop trigger keep_profile_span on device_profile;
drop function keep_profile_span();
drop table device_profile_span;
alter table profile
  drop column made_by,
  drop column made_session,
  drop column made_reason,
  drop column former_content_id;
