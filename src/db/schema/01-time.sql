-- Time. The program counts milliseconds since the epoch; the database keeps timestamptz.

create function ms_to_timestamp(ms bigint) returns timestamptz
  language sql immutable strict parallel safe
  return to_timestamp(ms / 1000.0);

-- The time that all processes go by, instead of the clocks of their own machines.
create function service_now() returns timestamptz
  language sql volatile parallel safe
  return clock_timestamp();

-- One row for the whole service: how far its time has come, and whether its clock is in doubt. The processes write
-- it every few seconds; there is none until the first of them has looked at the clock.
create table believed_time (
  only_row boolean primary key default true check (only_row),
  -- The time that was last believed. In doubt: plus what has passed since by a monotonic clock.
  reckoned_at timestamptz not null,
  -- When the doubt began; null: the clock is believed.
  doubted_at timestamptz,
  -- The clock was in doubt: times that it wrote while it was ahead are still to be brought back.
  is_unsettled boolean not null default false
);
