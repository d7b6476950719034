-- Least writer: 0.2.0
-- Up Migration

-- A removed device keeps its row until all that belonged to it is gone, some thousand rows a transaction. Meanwhile
-- nobody owns it, and its uuid is one that nobody knows: whoever looks it up by either finds nothing, as if the row
-- were gone.
alter table device alter column account_id drop not null;
-- Whose it was; null where an earlier version removed it.
alter table removed_device add column account_id bigint;

-- Likewise an account: since when it is removed. Its row then names nobody, and `disabled_at` is set too: earlier
-- versions, which do not know this column, shut its devices out by that.
alter table account add column removed_at timestamptz;
-- Every batch of ingest asks whether one of its accounts is here; mostly none is.
create index account_removed on account (id) where removed_at is not null;

-- Its account is removed: whoever waits for this row to count what it adds finds it closed.
alter table account_usage add column is_closed boolean not null default false;

-- Otherwise each piece of an account's profiles would read all profiles there are.
create index profile_account on profile (account_id);

-- Down Migration
drop index profile_account;
alter table account_usage drop column is_closed;
delete from account where removed_at is not null;
delete from device where account_id is null;
drop index account_removed;
alter table account drop column removed_at;
alter table removed_device drop column account_id;
alter table device alter column account_id set not null;
