-- Least writer: 0.2.0
-- Up Migration

-- Why a bundle could not become messages: it stays, and others do. Null: it was not tried, or has not failed.
alter table message_bundle add column error text;

-- Bytes that the account's devices added to `device_input` on that day: they count for what it stores.
alter table account_activity add column input_bytes bigint not null default 0;

-- So that former versions are counted without reading them.
create index former_version_bytes on former_version (device_id, purpose_id) include (bytes);

-- Down Migration

drop index former_version_bytes;
alter table account_activity drop column input_bytes;
alter table message_bundle drop column error;
