-- Least writer: 0.2.0
-- Up Migration

-- One row per alarm of which a transaction had to tell more people than it has room for, until a process that delivers
-- makes messages of it: those of `notification` as they were decided, and counted. Usually the table is empty.
create table message_bundle (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  device_id bigint references device on delete cascade,
  -- Null: of notices.
  alarm_id bigint,
  -- Messages, some of which are planned, or none; or that the alarm is over, of which those are told who were notified.
  holds text not null check (holds in ('planned', 'queued', 'over')),
  body json not null
);
create index message_bundle_alarm on message_bundle (alarm_id);
create index message_bundle_device on message_bundle (device_id);
create index message_bundle_account on message_bundle (account_id);

-- Down Migration

drop table message_bundle;
