-- Least writer: 0.2.0
-- Up Migration

-- What an alarm was about. The first measurement of what it fired for (a silence: since when nothing was heard), and
-- the measurement that ended it, each with its arrival. Null: not known, or there is none. Earlier versions write
-- neither.
alter table alarm
  add column began_at timestamptz,
  add column began_arrived_at timestamptz,
  add column over_at timestamptz,
  add column over_arrived_at timestamptz;

-- What each cause required when the alarm opened, and the values that opened it. Empty in alarms of earlier versions.
alter table alarm
  add column conditions json not null default '[]',
  add column fired_with json not null default '[]';

-- Of a closed alarm: the value furthest beyond the limit of its first numeric cause. `extreme_due_at`: when its timer
-- looks for it, after it closed, and after a late measurement fell inside. Null: it need not.
alter table alarm
  add column extreme json not null default '[]',
  add column extreme_due_at timestamptz;
create index alarm_extreme_due on alarm (extreme_due_at) where extreme_due_at is not null;
create index alarm_over on alarm (device_id, over_at) where over_at is not null;

-- How bad it is: `actions.severity` of its newest firing.
alter table alarm
  add column severity text not null default 'warning' check (severity in ('info', 'warning', 'critical'));

-- A contact is notified of nothing less bad than this.
alter table contact
  add column min_severity text not null default 'info' check (min_severity in ('info', 'warning', 'critical'));

-- What people wrote about it: `{ ts, by, on, text }`, at most twenty.
alter table alarm add column notes json not null default '[]';

-- Of an alarm that a person closed. `closed_with`: what opening it again within a minute restores. `again_at`: its
-- condition held, and if it still does by then another alarm opens; null: it does not hold any more.
alter table alarm
  add column closed_with json,
  add column again_at timestamptz;
create index alarm_again on alarm (again_at) where again_at is not null;
create index alarm_again_device on alarm (device_id) where again_at is not null;

-- Down Migration

alter table contact drop column min_severity;
drop index alarm_again_device;
drop index alarm_again;
drop index alarm_over;
drop index alarm_extreme_due;
alter table alarm
  drop column severity,
  drop column notes,
  drop column closed_with,
  drop column again_at,
  drop column conditions,
  drop column fired_with,
  drop column extreme,
  drop column extreme_due_at,
  drop column began_at,
  drop column began_arrived_at,
  drop column over_at,
  drop column over_arrived_at;
