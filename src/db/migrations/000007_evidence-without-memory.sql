-- Least writer: 0.1.0
-- Up Migration

-- What a sense's newest measurement is stands in the history, and is read there when a process takes a
-- device over. So a device's row is written where its evidence changes, which few measurements do.
update device_state
   set runtime = (runtime::jsonb - 'seen')::json
 where runtime is not null;

-- Down Migration
update device_state
   set runtime = (runtime::jsonb || '{"seen": {}}')::json
 where runtime is not null;
