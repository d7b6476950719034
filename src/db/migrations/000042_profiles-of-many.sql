-- Least writer: 0.2.0
-- Up Migration

-- The change of many devices' profiles that made it, which the job names; null: none did.
alter table profile add column change_id uuid;
create index profile_change on profile (change_id) where change_id is not null;

-- The profile that the device needed until such a change, to bring it back; null: none.
alter table device_profile add column former_id uuid;

-- Down Migration

alter table device_profile drop column former_id;
drop index profile_change;
alter table profile drop column change_id;
