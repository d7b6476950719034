-- Alarms: what lasts after an event has fired, and what people have silenced.

-- One row per alarm, open or closed. It opens when an event of the device's profile fires, and lasts as long as the
-- condition that it stands for. The transaction that fires, the timer and people change it.
create table alarm (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  device_id bigint not null references device on delete cascade,
  -- Streams still name the alarms of a removed device.
  device_uuid uuid not null,
  -- Which event of which profile.
  p_id text not null,
  pu_id integer not null,
  st_id integer not null,
  ev_id integer not null,
  -- Their names in the profile; empty if they have none.
  purpose_name text not null default '',
  state_name text not null default '',
  event_name text not null default '',
  -- silent-alarm: people get no message.
  tells text not null check (tells in ('alarm', 'silent-alarm')),
  -- The device's own engine found it.
  is_reported boolean not null,
  -- Its event belongs to a global state, so the episode ends with the purpose.
  is_global boolean not null,

  -- By the times of its events: the first firing, the newest one, and how many there were.
  since_at timestamptz not null,
  last_firing_at timestamptz not null,
  firings integer not null default 1,
  -- For the newest firing: the event, its actions that notify people, and its senses.
  event json not null,
  actions json not null,
  s_ids text[] not null,
  -- The state to which the newest firing moved the device: the alarm lasts while the device stays there. For a reported
  -- event: the state to which it leads.
  moved_pu_id integer,
  moved_st_id integer,
  -- Its condition is over, and actions.keepMs keeps it open until then. `ends_as` becomes its `closed_by`. Nobody is
  -- notified meanwhile.
  ends_at timestamptz,
  ends_as text,
  -- For a reported event: when it closes as expired.
  expires_at timestamptz,

  -- Whether people were notified: not yet, messages are queued, notified, or the announcement was withdrawn.
  told text not null default 'none' check (told in ('none', 'queued', 'told', 'withdrawn')),
  -- Why the last attempt notified nobody.
  not_notified text,
  -- Since when the current announcement stands; null: there is none.
  announced_at timestamptz,
  -- How many announcements there were.
  announcement integer not null default 0,
  -- How many in a row were withdrawn because every delivery failed.
  failures integer not null default 0,
  -- When its timer runs next; null: there is nothing to do.
  next_at timestamptz,
  repeat_ms bigint,
  -- It began with measurements too old to notify anybody of, and waits for a recent one.
  waits_for_fresh boolean not null default false,
  -- The newest `ts` of its senses (milliseconds since the epoch) when its timer last ran.
  looked_ts bigint,

  acknowledged_at timestamptz,
  acknowledged_by text,
  closed_at timestamptz,
  closed_by text check (closed_by in
    ('cleared', 'left-state', 'profile', 'configuration', 'expired', 'person')),
  -- It opened after the account had used up its events of the day, so it is deleted when it closes.
  is_beyond_quota boolean not null default false,
  -- The transaction of its last change: a stream that resumes after days is sent what it has not seen.
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

-- One row per alarm change of the last 24 hours, for live streams. Alarm changes and the events of `event_feed` have a
-- common order of storing.
create table alarm_change (
  account_id bigint not null,
  recorded_at timestamptz not null default now(),
  xact xid8 not null default pg_current_xact_id(),
  seq bigint not null default nextval('event_seq'),
  device_id bigint not null,
  device_uuid uuid not null,
  ts timestamptz not null,
  -- The change, and the alarm after it.
  body json not null
);
create index alarm_change_account on alarm_change (account_id, xact, seq);

-- An open alarm is deleted with its device, and streams report that.
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

-- One row per event of a device that a person has silenced for a while: its current alarm, and later ones. Another
-- profile ends it.
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

-- One row per device that a person has silenced, with all its events.
create table device_mute (
  device_id bigint primary key references device on delete cascade,
  until_at timestamptz not null,
  reason text,
  muted_at timestamptz not null,
  muted_by text not null
);

-- One row per device that existed before alarms did (0.4.0): an episode may already have begun and been notified. The
-- next firing of such an episode opens an alarm that notifies nobody again. Another profile deletes the row. Nothing
-- adds one.
create table alarm_upgrade (
  device_id bigint primary key references device on delete cascade
);
