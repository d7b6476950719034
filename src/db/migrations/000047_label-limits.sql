-- Least writer: 0.2.0
-- Up Migration

-- The limits that devices with a label take, in the order in which labels count: `label`, `purposeUuid`, `pId` (the
-- profile with a copy of that purpose) and `silenceMs` (how long a device may be silent at first); null: none.
alter table account add column label_limits json;

-- The label whose limits these are; null: somebody installed it on the device.
alter table device_profile add column label text;

-- Down Migration

alter table device_profile drop column label;
alter table account drop column label_limits;
