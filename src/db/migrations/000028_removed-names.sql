-- Least writer: 0.2.0
-- Up Migration

-- What a removed device was called, so that its owner recognises it where it goes on trying to log in. Null: an
-- earlier version removed it.
alter table removed_uuid add column name text;

-- Those of removed devices, newest first.
create index refused_login_removed on refused_login (account_id, last_at desc)
 where device_id is null;

-- Down Migration

drop index refused_login_removed;
alter table removed_uuid drop column name;
