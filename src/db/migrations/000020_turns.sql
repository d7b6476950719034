-- Least writer: 0.2.0
-- Up Migration

-- Of which announcement of which alarm a message is; null: of none. `planned`: it becomes `queued` when it is
-- due, and programs that know no alarms leave it alone until then.
alter table notification
  add column alarm_id bigint,
  add column announcement integer,
  -- The day (UTC) whose limits it counts for, so that a message that failed can be given back to them.
  add column counted_on date,
  -- The message that told of this one too.
  add column grouped_in bigint,
  drop constraint notification_type_check,
  add constraint notification_type_check
    check (type in ('notice', 'confirm', 'test', 'opened', 'repeated', 'escalated', 'closed')),
  drop constraint notification_state_check,
  add constraint notification_state_check
    check (state in ('planned', 'queued', 'sent', 'logged', 'failed', 'held-back'));
create index notification_alarm on notification (alarm_id, announcement) where alarm_id is not null;
create index notification_planned on notification (due_at) where state = 'planned';
create index notification_grouped on notification (grouped_in) where grouped_in is not null;
-- Push and SMS that wait for their turn. Those of older programs have no `due_at`, but a job.
create index notification_direct on notification (account_id, kind, recipient, due_at, id)
 where state = 'queued' and contact_id is null and due_at is not null;

-- The turn of a push token or telephone number of an account; a contact's stands in its own row.
create table recipient_turn (
  account_id bigint not null references account on delete cascade,
  kind text not null,
  recipient text not null,
  busy_until timestamptz,
  served_at timestamptz,
  failures integer not null default 0,
  rests_until timestamptz,
  -- When the last messages were sent, newest first, and until when further ones are gathered.
  recent timestamptz[] not null default '{}',
  gathers_until timestamptz,
  primary key (account_id, kind, recipient)
) with (fillfactor = 70);
alter table contact
  add column recent timestamptz[] not null default '{}',
  add column gathers_until timestamptz;

-- Down Migration
drop table recipient_turn;
alter table contact drop column recent, drop column gathers_until;
drop index notification_direct, notification_grouped, notification_planned, notification_alarm;
update notification set state = 'failed', reason = 'contact-gone' where state = 'planned';
update notification set type = 'notice' where type not in ('notice', 'confirm', 'test');
alter table notification
  drop constraint notification_state_check,
  add constraint notification_state_check
    check (state in ('queued', 'sent', 'logged', 'failed', 'held-back')),
  drop constraint notification_type_check,
  add constraint notification_type_check check (type in ('notice', 'confirm', 'test')),
  drop column grouped_in, drop column counted_on, drop column announcement, drop column alarm_id;
