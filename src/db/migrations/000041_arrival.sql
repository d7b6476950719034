-- Least writer: 0.2.0
-- Up Migration

-- When a measurement counts as arrived: whole milliseconds, never below what its device was evaluated as of before.
-- `nth` is its place p (from 0) among the device's measurements of that arrival, in the order of evaluation: p if the
-- device gave the time, -1 - p if the service did, null for p = 0 with the device's time. Both are null for what was
-- imported, and for what versions up to 0.4.0 store.
alter table measurement
  add column arrived bigint,
  add column nth smallint;

-- The device's last arrival when its row was written. Later ones are in its newest measurements.
alter table device_state add column arrived_at timestamptz;

-- Down Migration

alter table measurement
  drop column arrived,
  drop column nth;
alter table device_state drop column arrived_at;
