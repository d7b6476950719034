-- Least writer: 0.2.0
-- Up Migration

-- How far the service's time has come, and whether its clock is in doubt (src/clock/belief.ts). One row, which
-- all processes share; none until the first of them has looked at the clock.
create table believed_time (
  only_row boolean primary key default true check (only_row),
  -- The time that was last believed; in doubt: plus what has passed since by a monotonic clock.
  reckoned_at timestamptz not null,
  -- When the doubt began; null: the clock is believed.
  doubted_at timestamptz
);

-- Down Migration

drop table believed_time;
