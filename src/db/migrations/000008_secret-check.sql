-- Least writer: 0.2.0
-- Up Migration

-- What tells whether a process was given the secret that the tokens here were made with: a value
-- derived from it, from which nothing else can be made. More than one while the secret is being changed.
create table secret_check (
  value text primary key,
  -- 1 is the newest. Not told by time: clocks differ, and two may be noted at once.
  place integer not null,
  noted_at timestamptz not null default now()
);

-- Down Migration
drop table secret_check;
