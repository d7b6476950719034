-- Least writer: 0.1.0
-- Up Migration

-- One row for each recipient of each push and SMS: what was asked for, and what became of it.
create table notification (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  device_id bigint not null references device on delete cascade,
  kind text not null check (kind in ('push', 'sms')),
  -- A push token or a telephone number; shown masked only.
  recipient text not null,
  title text not null,
  body text not null,
  -- Where the event comes from: pId, puId, stId, evId, ts.
  engine json not null,
  state text not null default 'queued' check (state in ('queued', 'sent', 'failed', 'held-back')),
  -- Which driver took it.
  via text,
  attempts integer not null default 0,
  error text,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now()
);
create index notification_newest on notification (device_id, created_at desc, id desc);
create index notification_account on notification (account_id);
create index notification_age on notification (created_at);

-- How many notifications an account asked for on its latest day (UTC); its row is the lock that
-- keeps two transactions from sharing out the same rest.
create table notification_quota (
  account_id bigint primary key references account on delete cascade,
  day date not null,
  used bigint not null
);

-- Down Migration
drop table notification_quota, notification;
