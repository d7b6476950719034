-- Least writer: 0.2.0
-- Up Migration

alter table backtest
  -- The devices that were asked for, also those that were removed since.
  add column device_uuids uuid[] not null default '{}',
  -- The profile that was installed from it; null: none.
  add column installed_p_id uuid;

-- Down Migration

alter table backtest drop column device_uuids, drop column installed_p_id;
