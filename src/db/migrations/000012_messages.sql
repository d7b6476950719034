-- Least writer: 0.2.0
-- Up Migration

-- Of one message few rejections are kept one by one, the others as a number in one more row.
alter table rejection add column more integer;
-- A flood is removed as fast as it comes; what it leaves behind is cleared before it has grown large.
alter table rejection set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- How many rejections a device has, and the bytes of their texts. A device that is not here was never
-- counted: that is done with its next rejection.
create table rejection_count (
  device_id bigint primary key references device on delete cascade,
  count bigint not null,
  bytes bigint not null
) with (fillfactor = 50);

-- Whether SMS may be sent for an account: the operator says so.
alter table account add column may_send_sms boolean not null default false;
-- Alarms that are set up go on working.
update account set may_send_sms = true
 where exists (
   select from profile_content
    where account_id = account.id and purposes::text ~ '"phoneNumber":\s*\[\s*"');

-- What was sent on a day (UTC), by whatever it is limited by. Its row is the lock that keeps two
-- transactions from sharing out the same rest; a new day begins in the same row.
create table message_count (
  -- account, recipient (of an account), sms (of an account), number, installation
  kind text collate "C" not null,
  -- 0 where it is no account's
  account_id bigint not null,
  key text collate "C" not null,
  day date not null,
  used bigint not null,
  primary key (kind, account_id, key)
) with (fillfactor = 70);
create index message_count_day on message_count (day);
insert into message_count (kind, account_id, key, day, used)
select 'account', account_id, '', day, used from notification_quota;
drop table notification_quota;

-- What was not sent for one reason on one day is one row of its device, whose first one it tells of.
alter table notification
  add column count integer not null default 1 check (count > 0),
  add column reason text,
  add column unsent_day date;
create unique index notification_unsent on notification (device_id, kind, reason, unsent_day)
 where unsent_day is not null;

-- Down Migration
drop index notification_unsent;
alter table notification drop column count, drop column reason, drop column unsent_day;
create table notification_quota (
  account_id bigint primary key references account on delete cascade,
  day date not null,
  used bigint not null
);
drop table message_count;
alter table account drop column may_send_sms;
drop table rejection_count;
alter table rejection reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
alter table rejection drop column more;
