-- Least writer: 0.2.0
-- Up Migration

-- The change of many devices' profiles that made the profile the limits of another label without installing anything,
-- because the purposes are the same; and whose limits it was before (null: the device's own). Null: none did.
alter table device_profile
  add column relabelled_by uuid,
  add column relabelled_from text;

-- Down Migration

alter table device_profile
  drop column relabelled_by,
  drop column relabelled_from;
