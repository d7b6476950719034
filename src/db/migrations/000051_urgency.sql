-- Least writer: 0.2.0
-- Up Migration

-- How urgent a message is: 0 critical, 1 warning, 2 info. Of those that wait for a recipient the most urgent goes
-- first. Earlier versions write 1, and send the oldest first.
alter table notification add column urgency smallint not null default 1;
drop index notification_due;
create index notification_due on notification (contact_id, urgency, due_at, id)
 where state = 'queued' and contact_id is not null;
drop index notification_direct;
create index notification_direct on notification (account_id, kind, recipient, urgency, due_at, id)
 where state = 'queued' and contact_id is null and due_at is not null;

-- Down Migration

drop index notification_direct;
create index notification_direct on notification (account_id, kind, recipient, due_at, id)
 where state = 'queued' and contact_id is null and due_at is not null;
drop index notification_due;
create index notification_due on notification (contact_id, due_at, id)
 where state = 'queued' and contact_id is not null;
alter table notification drop column urgency;
