-- Least writer: 0.2.0
-- Up Migration

-- A job that plays a backtest is `playing`: what does other jobs leaves it alone.
alter table job
  drop constraint job_state_check,
  add constraint job_state_check check (state in ('running', 'acting', 'playing', 'done', 'stopped'));
create index job_playing on job (served_at, id) where state = 'playing';

-- Measurements that backtests may have read on that day (UTC).
alter table account_usage
  add column played_day date not null default '-infinity',
  add column played bigint not null default 0;

-- One row per backtest that is kept: a job.
create table backtest (
  job_id bigint primary key references job on delete cascade,
  account_id bigint not null references account on delete cascade,
  name text,
  -- What is played, as it was read when it was asked for: `StoredBacktest` of src/play/store.ts.
  asked json not null,
  -- Times of arrival, ms: the range (inclusive), and where playing begins.
  start_ts bigint not null,
  end_ts bigint not null,
  played_from_ts bigint not null,
  -- How many measurements are counted for it on that day (UTC); null once what was not read is given back.
  reserved bigint,
  reserved_on date not null,
  -- How many measurements its runs have read.
  read bigint not null default 0,
  -- Of `backtest_lines`; less those of devices that were removed only once the backtest is removed.
  bytes bigint not null default 0,
  -- The run that plays it, and when that was last heard of; null: none.
  run uuid,
  heard_at timestamptz,
  -- How often in a row the device that is next failed.
  failures smallint not null default 0
);
create index backtest_account on backtest (account_id);
-- For finding those that have ended, each second.
create index backtest_reserved on backtest (job_id) where reserved is not null;

-- One row per device of a backtest: what was found. Devices are played in the order of their numbers.
create table backtest_device (
  backtest_id bigint not null references backtest on delete cascade,
  device_id bigint not null references device on delete cascade,
  account_id bigint not null references account on delete cascade,
  is_done boolean not null default false,
  -- It was given up.
  has_failed boolean not null default false,
  measured bigint not null default 0,
  firings bigint not null default 0,
  moves bigint not null default 0,
  alarms bigint not null default 0,
  differences bigint not null default 0,
  caveats text[] not null default '{}',
  primary key (backtest_id, device_id)
) with (fillfactor = 70);
create index backtest_device_device on backtest_device (device_id);
create index backtest_device_account on backtest_device (account_id);

-- Lines of a device, of one kind, in their order: some hundred a row, as compressed text (raw deflate, one JSON
-- document per line). A million short rows would take ten times the room.
create table backtest_lines (
  backtest_id bigint not null references backtest on delete cascade,
  device_id bigint not null references device on delete cascade,
  account_id bigint not null references account on delete cascade,
  kind text not null,
  nth integer not null,
  count integer not null,
  body bytea not null,
  primary key (backtest_id, kind, device_id, nth)
);
alter table backtest_lines alter column body set storage external;
create index backtest_lines_device on backtest_lines (device_id);
create index backtest_lines_account on backtest_lines (account_id);

-- Down Migration

drop table backtest_lines;
drop table backtest_device;
drop table backtest;
alter table account_usage drop column played_day, drop column played;
drop index job_playing;
delete from job where state = 'playing' or action->>'action' = 'backtest';
alter table job
  drop constraint job_state_check,
  add constraint job_state_check check (state in ('running', 'acting', 'done', 'stopped'));
