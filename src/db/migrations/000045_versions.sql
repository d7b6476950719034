-- Least writer: 0.2.0
-- Up Migration

-- Who wrote what is there now, when and why. `changed_by`: an actor of the audit trail; null: nobody knows, because it
-- is from before, or another version of the program wrote it.
alter table purpose
  add column version integer not null default 1,
  add column changed_at timestamptz,
  add column changed_by text,
  add column changed_session uuid,
  add column change_reason text;
alter table device
  add column configuration_version integer not null default 1,
  add column configured_by text,
  add column configured_session uuid,
  add column configured_reason text;

-- One row per version of a purpose, or of a device's configuration, that another one replaced. Triggers write it, and
-- remove the oldest of those that have more than 1,000, or more than 256 KiB; the upkeep removes what is as old as
-- events may be.
create table former_version (
  id bigint generated always as identity primary key,
  -- One of the two.
  purpose_id uuid references purpose on delete cascade,
  device_id bigint references device on delete cascade,
  version integer not null,
  made_at timestamptz not null,
  ended_at timestamptz not null,
  made_by text,
  session_id uuid,
  reason text,
  name text not null,
  bytes integer not null,
  body json not null,
  check (num_nonnulls(purpose_id, device_id) = 1)
);
create unique index former_version_purpose on former_version (purpose_id, version);
create unique index former_version_device on former_version (device_id, version);
create index former_version_ended on former_version (ended_at);

-- The newest version that is one too many, where `former` are versions of one thing.
create function last_to_forget(purpose uuid, device bigint) returns integer language sql stable as $$
  select max(version)
    from (
      select version, row_number() over newest as nth, sum(bytes) over newest as bytes_to_here
        from former_version
       where purpose_id = purpose or device_id = device
      window newest as (order by version desc)
    ) as former
   where nth > 1000 or (nth > 1 and bytes_to_here > 262144);
$$;

create function keep_former_purpose() returns trigger language plpgsql as $$
begin
  -- A program that knows no versions leaves the number as it was.
  if new.version = old.version then
    new.version := old.version + 1;
    new.changed_at := now();
    new.changed_by := null;
    new.changed_session := null;
    new.change_reason := null;
  end if;
  insert into former_version
    (purpose_id, version, made_at, ended_at, made_by, session_id, reason, name, bytes, body)
  values (old.id, old.version, coalesce(old.changed_at, old.created_at), new.changed_at, old.changed_by,
          old.changed_session, old.change_reason, old.name, old.bytes, old.body);
  delete from former_version
   where purpose_id = old.id and version <= last_to_forget(old.id, null);
  return new;
end $$;
create trigger keep_former_purpose before update of body on purpose
  for each row when (old.body::text is distinct from new.body::text)
  execute function keep_former_purpose();

create function keep_former_configuration() returns trigger language plpgsql as $$
begin
  if new.configuration_version = old.configuration_version then
    new.configuration_version := old.configuration_version + 1;
    new.configured_by := null;
    new.configured_session := null;
    new.configured_reason := null;
  end if;
  -- A device that changes its own configuration makes one version an hour.
  if new.configured_by = 'device' and old.configured_by = 'device' and exists (
    select from former_version
     where device_id = old.id and version = old.configuration_version - 1
       and ended_at > new.configured_at - interval '1 hour'
  ) then
    new.configuration_version := old.configuration_version;
    return new;
  end if;
  insert into former_version
    (device_id, version, made_at, ended_at, made_by, session_id, reason, name, bytes, body)
  values (old.id, old.configuration_version, old.configured_at, new.configured_at, old.configured_by,
          old.configured_session, old.configured_reason, old.name,
          octet_length(old.configuration::text), old.configuration);
  delete from former_version
   where device_id = old.id and version <= last_to_forget(null, old.id);
  return new;
end $$;
create trigger keep_former_configuration before update of configuration on device
  for each row when (old.configuration::text is distinct from new.configuration::text)
  execute function keep_former_configuration();

-- Down Migration

drop trigger keep_former_configuration on device;
drop trigger keep_former_purpose on purpose;
drop function keep_former_configuration();
drop function keep_former_purpose();
drop function last_to_forget(uuid, bigint);
drop table former_version;
alter table device
  drop column configuration_version,
  drop column configured_by,
  drop column configured_session,
  drop column configured_reason;
alter table purpose
  drop column version,
  drop column changed_at,
  drop column changed_by,
  drop column changed_session,
  drop column change_reason;
