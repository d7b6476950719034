-- Least writer: 0.2.0
-- Up Migration

-- An alarm of a device: an event of its profile fired, and what it stands for lasts. Written within the
-- transaction of what changes it.
create table alarm (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  device_id bigint not null references device on delete cascade,
  -- Streams are told of the alarms of a device that was removed.
  device_uuid uuid not null,
  p_id text not null,
  pu_id integer not null,
  st_id integer not null,
  ev_id integer not null,
  -- As the profile has them; empty where it has none.
  purpose_name text not null default '',
  state_name text not null default '',
  event_name text not null default '',
  -- silent-alarm: it asks for no message to people
  tells text not null check (tells in ('alarm', 'silent-alarm')),
  -- The device's own engine found it.
  is_reported boolean not null,
  -- Its event belongs to a global state: the episode ends with the purpose.
  is_global boolean not null,

  -- Time of the first firing and of the newest one, by their events.
  since_at timestamptz not null,
  last_firing_at timestamptz not null,
  firings integer not null default 1,
  -- The newest firing's, with the actions that told of it.
  event json not null,
  actions json not null,
  s_ids text[] not null,
  -- The state that it lasts with, where the newest firing moved the device; of a reported event: where it leads.
  moved_pu_id integer,
  moved_st_id integer,
  -- What it stands for is over, and actions.keepMs keeps it open until then; `ends_as` is its closed_by.
  -- Nothing is told meanwhile.
  ends_at timestamptz,
  ends_as text,
  -- Of a reported event: closes as expired.
  expires_at timestamptz,

  told text not null default 'none' check (told in ('none', 'queued', 'told', 'withdrawn')),
  -- Why the last attempt to tell of it told nobody.
  not_notified text,
  -- Since when the announcement stands; null: none does.
  announced_at timestamptz,
  -- How many there were.
  announcement integer not null default 0,
  -- How often in a row one was taken back because every delivery failed.
  failures integer not null default 0,
  -- When its timer looks next; null: there is nothing to do.
  next_at timestamptz,
  repeat_ms bigint,
  -- It began with measurements that were too old to tell of, and waits for one that is not.
  waits_for_fresh boolean not null default false,
  -- The newest `ts` of its senses (ms) at the timer's last look.
  looked_ts bigint,

  acknowledged_at timestamptz,
  acknowledged_by text,
  closed_at timestamptz,
  closed_by text check (closed_by in
    ('cleared', 'left-state', 'profile', 'configuration', 'expired', 'person')),
  -- Opened when the account's events of the day were used up: it is not kept once it is closed.
  is_beyond_quota boolean not null default false,
  -- Of its last change: a stream that resumes after days is sent those that it has not seen.
  xact xid8 not null default pg_current_xact_id()
) with (fillfactor = 70);
create unique index alarm_open on alarm (device_id, pu_id, st_id, ev_id) where closed_at is null;
create index alarm_account on alarm (account_id, id);
create index alarm_account_open on alarm (account_id, id) where closed_at is null;
create index alarm_device on alarm (device_id, id);
create index alarm_next on alarm (next_at) where closed_at is null and next_at is not null;
create index alarm_end on alarm (least(ends_at, expires_at))
 where closed_at is null and (ends_at is not null or expires_at is not null);
create index alarm_closed on alarm (closed_at) where closed_at is not null;

-- An event of a device that nobody is told of until then: its alarm now and later ones. Another profile ends it.
create table alarm_snooze (
  device_id bigint not null references device on delete cascade,
  pu_id integer not null,
  st_id integer not null,
  ev_id integer not null,
  p_id text not null,
  until_at timestamptz not null,
  reason text,
  snoozed_at timestamptz not null,
  snoozed_by text not null,
  primary key (device_id, pu_id, st_id, ev_id)
);

-- All events of a device.
create table device_mute (
  device_id bigint primary key references device on delete cascade,
  until_at timestamptz not null,
  reason text,
  muted_at timestamptz not null,
  muted_by text not null
);

-- Changes of alarms in the order in which they were stored, for live streams: kept as long as `event_feed`, and
-- in one order with it.
create table alarm_change (
  account_id bigint not null,
  recorded_at timestamptz not null default now(),
  xact xid8 not null default pg_current_xact_id(),
  seq bigint not null default nextval('event_seq'),
  device_id bigint not null,
  device_uuid uuid not null,
  ts timestamptz not null,
  -- The change, and the alarm as it is after it.
  body json not null
);
create index alarm_change_account on alarm_change (account_id, xact, seq);

-- With its device an open alarm goes: only streams say so.
create function tell_removed_alarms() returns trigger language plpgsql as $$
begin
  insert into alarm_change (account_id, device_id, device_uuid, ts, body)
  select account_id, device_id, device_uuid, clock_timestamp(),
         json_build_object('change', 'removed', 'alarmId', id)
    from removed
   where closed_at is null;
  return null;
end $$;
create trigger tell_removed_alarms after delete on alarm
  referencing old table as removed
  for each statement execute function tell_removed_alarms();

-- Devices whose episodes may have begun, and been told of, before there were alarms: the next firing of such an
-- episode opens an alarm that tells nobody again. Another profile ends them all.
create table alarm_upgrade (
  device_id bigint primary key references device on delete cascade
);
insert into alarm_upgrade (device_id)
select s.device_id from device_state s where s.runtime is not null;

-- Down Migration
drop table alarm_upgrade, alarm_change, device_mute, alarm_snooze, alarm;
drop function tell_removed_alarms;
