-- Time. The program counts milliseconds since the epoch; the database stores timestamptz.

create function ms_to_timestamp(ms bigint) returns timestamptz
  language sql immutable strict parallel safe
  return to_timestamp(ms / 1000.0);

-- The time that all processes use, instead of the clocks of their own machines.
create function service_now() returns timestamptz
  language sql volatile parallel safe
  return clock_timestamp();

-- One row for the whole service: its latest believed time, and whether its clock is in doubt. The processes update it
-- every few seconds. Until the first of them has checked the clock, there is no row.
create table believed_time (
  only_row boolean primary key default true check (only_row),
  -- The time that was last believed; while in doubt, plus the time that a monotonic clock has measured since.
  reckoned_at timestamptz not null,
  -- When the doubt began; null: the clock is believed.
  doubted_at timestamptz,
  -- The clock was in doubt, and the times written while it was ahead have not been corrected yet.
  is_unsettled boolean not null default false
);
