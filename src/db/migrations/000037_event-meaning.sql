-- Least writer: 0.2.0
-- Up Migration

-- What the events of a place in a profile are called, and what they require: one row for each (profile, purpose, state,
-- event) of which an event was recorded. It outlives the profile's content. Events of earlier versions have none.
create table event_meaning (
  account_id bigint not null references account on delete cascade,
  p_id text collate "C" not null,
  pu_id integer not null,
  st_id integer not null,
  ev_id integer not null,
  -- `EventMeaning`, a few kilobytes at most.
  body json not null,
  -- When an event of it was last recorded, to a day.
  recorded_at timestamptz not null,
  primary key (account_id, p_id, pu_id, st_id, ev_id)
);
create index event_meaning_recorded on event_meaning (recorded_at);

-- Finds the closed alarms into whose time a late measurement falls; also those that no measurement ended.
drop index alarm_over;
create index alarm_over on alarm (device_id, coalesce(over_at, closed_at)) where closed_at is not null;

-- Down Migration

drop index alarm_over;
create index alarm_over on alarm (device_id, over_at) where over_at is not null;
drop table event_meaning;
