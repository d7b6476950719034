-- Least writer: 0.2.0
-- Up Migration

-- What an account does with many devices. A process does some of them in one transaction, which moves `done`
-- on: whoever is next goes on from there, so each device has its turn once.
create table job (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  -- The API key that began it; null: a session.
  key_id uuid,
  -- What is done with each device.
  action json not null,
  -- Only with devices that have one of these; null: with any.
  labels text[],
  -- Who began it, for the audit trail.
  actor json not null,
  state text not null default 'running' check (state in ('running', 'done', 'stopped')),
  -- In their order; empty once the job has ended.
  devices uuid[] not null,
  total integer not null,
  done integer not null default 0,
  -- The first of those with which it could not be done, and how many more there are.
  failed json not null default '[]',
  failed_more integer not null default 0,
  created_at timestamptz not null,
  ended_at timestamptz,
  -- Jobs take turns.
  served_at timestamptz not null default '-infinity'
) with (fillfactor = 70);
create index job_account on job (account_id, id);
create index job_running on job (served_at, id) where state = 'running';

-- Down Migration
drop table job;
