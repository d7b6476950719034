-- Least writer: 0.2.0
-- Up Migration

-- What an alarm was about. The first measurement of what it fired for (a silence: since when nothing was heard), and the
-- measurement that ended it, each with its arrival. Null: not known, or there is none. Earlier versions write neither.
alter table alarm
  add column began_at timestamptz,
  add column began_arrived_at timestamptz,
  add column over_at timestamptz,
  add column over_arrived_at timestamptz;

-- Down Migration

alter table alarm
  drop column began_at,
  drop column began_arrived_at,
  drop column over_at,
  drop column over_arrived_at;
