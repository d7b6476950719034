-- Least writer: 0.2.0
-- Up Migration

alter table backtest
  -- The devices that were asked for, also those that were removed since.
  add column device_uuids uuid[] not null default '{}',
  -- The profile that was installed from it; null: none.
  add column installed_p_id uuid,
  -- It goes on with what comes in, and when it last did, ms.
  add column follows boolean not null default false,
  add column followed_ts bigint not null default 0,
  -- Why it does not follow any more; null: it does, or never did.
  add column ended_reason text,
  -- Lines that were replaced, because something showed up late.
  add column revised bigint not null default 0;

alter table backtest_device
  -- Where the player stood (`Checkpoint` of src/play/backtest.ts); null: the backtest does not follow.
  add column older json,
  add column newer json;

-- Down Migration

alter table backtest_device drop column older, drop column newer;
alter table backtest
  drop column device_uuids,
  drop column installed_p_id,
  drop column follows,
  drop column followed_ts,
  drop column ended_reason,
  drop column revised;
