-- Notifications: who is told, by which channel, and what became of it. This is the outbox: a row is written in the
-- transaction that gives rise to it, and delivered afterwards.

-- A row an e-mail address or webhook that an account is told by. Its owner writes it; a delivery takes the row as the turn of
-- that recipient, so that one message at a time goes there.
create table contact (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  kind text not null check (kind in ('email', 'webhook')),
  -- As it was given, and what it is found by.
  address text not null,
  address_normal text collate "C" not null,
  -- Its place in the account's list.
  place integer not null,
  -- Tells of devices that have one of these; empty: of all.
  labels text[] not null default '{}',
  -- An alarm has to be open for so long before this contact is told.
  after_ms bigint not null default 0,
  -- It is told too when an alarm is over.
  when_over boolean not null default false,
  -- E-mail only: a webhook needs no confirmation.
  confirmed_at timestamptz,
  unsubscribed_at timestamptz,
  created_at timestamptz not null default now(),
  -- Until then a process delivers to it, also where that process ends meanwhile; and when it had its last turn.
  busy_until timestamptz,
  served_at timestamptz,
  -- How many deliveries failed in a row, and until when none is tried.
  failures integer not null default 0,
  rests_until timestamptz,
  -- When the last messages were sent, newest first, and until when further ones are gathered into one.
  recent timestamptz[] not null default '{}',
  gathers_until timestamptz,
  -- How the last delivery ended.
  last_at timestamptz,
  last_state text,
  last_reason text,
  unique (account_id, kind, address_normal)
) with (fillfactor = 70);

-- A row a push token that a session has added. Those that Update Account replaces as a whole are in account.apn. Sessions
-- may be in Redis: no foreign key leads to them.
create table push_token (
  account_id bigint not null references account on delete cascade,
  token text not null,
  session_id uuid not null,
  -- What the app calls itself.
  name text,
  added_at timestamptz not null,
  primary key (account_id, token)
);
create index push_token_session on push_token (session_id);

-- A row a message to one recipient: what was asked for, and what became of it. What was not sent for one reason on one
-- day is one row of its device, with a number.
create table notification (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  -- Null: it is of no device, a trial or a request for confirmation.
  device_id bigint references device on delete cascade,
  kind text not null check (kind in ('push', 'sms', 'email', 'webhook')),
  type text not null default 'notice'
    check (type in ('notice', 'confirm', 'test', 'opened', 'repeated', 'escalated', 'closed')),
  -- Null: `recipient` is a push token or a telephone number, not a contact.
  contact_id bigint,
  -- Shown masked only.
  recipient text not null,
  title text not null,
  body text not null,
  -- What a webhook is sent beside the text.
  data json,
  -- Where the event comes from: pId, puId, stId, evId, ts.
  engine json,
  -- The announcement of an alarm that it belongs to; null: of none.
  alarm_id bigint,
  announcement integer,
  -- The message that told of this one too.
  grouped_in bigint,
  -- planned: becomes queued when it is due. Programs that know no alarms leave it alone until then.
  state text not null default 'queued'
    check (state in ('planned', 'queued', 'sent', 'logged', 'failed', 'held-back')),
  -- Null: 0.2.0 wrote it, and delivers it by a job of its own.
  due_at timestamptz,
  -- The driver that took it.
  via text,
  attempts integer not null default 0,
  error text,
  -- Why it was not sent, on which day (UTC), and how many such messages this row stands for.
  reason text,
  unsent_day date,
  count integer not null default 1 check (count > 0),
  -- The day (UTC) whose limits it counts for: one that failed is given back to them.
  counted_on date,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now()
);
create index notification_newest on notification (device_id, created_at desc, id desc);
create index notification_account on notification (account_id);
create index notification_age on notification (created_at);
create index notification_due on notification (contact_id, due_at, id)
 where state = 'queued' and contact_id is not null;
-- Push and SMS that wait.
create index notification_direct on notification (account_id, kind, recipient, due_at, id)
 where state = 'queued' and contact_id is null and due_at is not null;
create index notification_planned on notification (due_at) where state = 'planned';
-- What waits for its time goes with its contact: without this such a removal reads everybody's messages.
create index notification_planned_contact on notification (contact_id) where state = 'planned';
create index notification_alarm on notification (alarm_id, announcement) where alarm_id is not null;
create index notification_grouped on notification (grouped_in) where grouped_in is not null;
create unique index notification_unsent on notification (device_id, kind, reason, unsent_day)
 where unsent_day is not null;

-- A row a push token or telephone number of an account: its turn, as `contact` has it for e-mail and webhooks.
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

-- A row a limit: how many messages count for it on a day (UTC). It is the lock that keeps two transactions from sharing
-- out the same rest; a new day begins in the same row.
create table message_count (
  -- account, recipient (of an account), sms (of an account), number, installation
  kind text collate "C" not null,
  -- 0 where the limit is no account's.
  account_id bigint not null,
  key text collate "C" not null,
  day date not null,
  used bigint not null,
  primary key (kind, account_id, key)
) with (fillfactor = 70);
create index message_count_day on message_count (day);

-- A row a process that delivers: by which channels. It renews the row as long as it lives.
create table delivering_process (
  process uuid primary key,
  channels text[] not null,
  seen_at timestamptz not null
);
