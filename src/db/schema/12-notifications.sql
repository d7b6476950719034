-- Notifications: who is notified, by which channel, and with what result. This is the outbox: a row is written in the
-- transaction that causes it, and delivered afterwards.

-- One row per e-mail address or webhook by which an account is notified. Its owner writes it. A delivery claims the
-- row, so that one message at a time goes to that recipient.
create table contact (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  kind text not null check (kind in ('email', 'webhook')),
  -- As entered, and normalized for lookups.
  address text not null,
  address_normal text collate "C" not null,
  -- Its position in the account's list.
  place integer not null,
  -- Restricts it to devices that have one of these labels; empty: all devices.
  labels text[] not null default '{}',
  -- How long an alarm must be open before this contact is notified.
  after_ms bigint not null default 0,
  -- Whether it is also notified when an alarm is over.
  when_over boolean not null default false,
  -- E-mail only: a webhook needs no confirmation.
  confirmed_at timestamptz,
  unsubscribed_at timestamptz,
  created_at timestamptz not null default now(),
  -- Until when a process has claimed it for delivery, even if that process ends meanwhile; and when it was last
  -- claimed.
  busy_until timestamptz,
  served_at timestamptz,
  -- How many deliveries failed in a row, and until when no further one is tried.
  failures integer not null default 0,
  rests_until timestamptz,
  -- When the last messages were sent, newest first, and until when further ones are grouped into one.
  recent timestamptz[] not null default '{}',
  gathers_until timestamptz,
  -- The result of the last delivery.
  last_at timestamptz,
  last_state text,
  last_reason text,
  unique (account_id, kind, address_normal)
) with (fillfactor = 70);

-- One row per push token that a session has added. Those that Update Account replaces as a whole are in account.apn.
-- Sessions may be in Redis, so no foreign key refers to them.
create table push_token (
  account_id bigint not null references account on delete cascade,
  token text not null,
  session_id uuid not null,
  -- The app's name for itself.
  name text,
  added_at timestamptz not null,
  primary key (account_id, token)
);
create index push_token_session on push_token (session_id);

-- One row per message to one recipient, with its result. Messages of a device that were not sent for the same reason on
-- the same day share a row with a count.
create table notification (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  -- Null: the message concerns no device; it is a test or a request for confirmation.
  device_id bigint references device on delete cascade,
  kind text not null check (kind in ('push', 'sms', 'email', 'webhook')),
  type text not null default 'notice'
    check (type in ('notice', 'confirm', 'test', 'opened', 'repeated', 'escalated', 'closed')),
  -- Null: `recipient` is a push token or a telephone number, not a contact.
  contact_id bigint,
  -- Only shown masked.
  recipient text not null,
  title text not null,
  body text not null,
  -- What a webhook receives besides the text.
  data json,
  -- The origin of the event: pId, puId, stId, evId, ts.
  engine json,
  -- The announcement of an alarm that it belongs to; null: none.
  alarm_id bigint,
  announcement integer,
  -- The message that included this one.
  grouped_in bigint,
  -- planned: becomes queued when it is due. Programs without alarms ignore it until then.
  state text not null default 'queued'
    check (state in ('planned', 'queued', 'sent', 'logged', 'failed', 'held-back')),
  -- Null: 0.2.0 wrote it, and delivers it by a job of its own.
  due_at timestamptz,
  -- The driver that accepted it.
  via text,
  attempts integer not null default 0,
  error text,
  -- Why it was not sent, on which day (UTC), and how many such messages this row counts.
  reason text,
  unsent_day date,
  count integer not null default 1 check (count > 0),
  -- The day (UTC) whose limits it counts against. A message that failed is credited back.
  counted_on date,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now()
);
create index notification_newest on notification (device_id, created_at desc, id desc);
create index notification_account on notification (account_id);
create index notification_age on notification (created_at);
create index notification_due on notification (contact_id, due_at, id)
 where state = 'queued' and contact_id is not null;
-- Queued push and SMS messages.
create index notification_direct on notification (account_id, kind, recipient, due_at, id)
 where state = 'queued' and contact_id is null and due_at is not null;
create index notification_planned on notification (due_at) where state = 'planned';
-- Planned messages are deleted with their contact. Without this index, deleting a contact would read everybody's
-- messages.
create index notification_planned_contact on notification (contact_id) where state = 'planned';
create index notification_alarm on notification (alarm_id, announcement) where alarm_id is not null;
create index notification_grouped on notification (grouped_in) where grouped_in is not null;
create unique index notification_unsent on notification (device_id, kind, reason, unsent_day)
 where unsent_day is not null;

-- One row per push token or telephone number of an account, to claim it for delivery as `contact` does for e-mail and
-- webhooks.
create table recipient_turn (
  account_id bigint not null references account on delete cascade,
  kind text not null,
  recipient text not null,
  busy_until timestamptz,
  served_at timestamptz,
  failures integer not null default 0,
  rests_until timestamptz,
  recent timestamptz[] not null default '{}',
  gathers_until timestamptz,
  primary key (account_id, kind, recipient)
) with (fillfactor = 70);

-- One row per limit: how many messages count against it on a day (UTC). The row is also the lock that keeps two
-- transactions from using the same remainder. A new day reuses the row.
create table message_count (
  -- account, recipient (of an account), sms (of an account), number, installation
  kind text collate "C" not null,
  -- 0 if the limit belongs to no account.
  account_id bigint not null,
  key text collate "C" not null,
  day date not null,
  used bigint not null,
  primary key (kind, account_id, key)
) with (fillfactor = 70);
create index message_count_day on message_count (day);

-- One row per process that delivers, with its channels. The process renews it while it runs.
create table delivering_process (
  process uuid primary key,
  channels text[] not null,
  seen_at timestamptz not null
);
