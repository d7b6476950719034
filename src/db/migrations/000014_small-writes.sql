-- Least writer: 0.2.0
-- Up Migration

-- Evidence of long windows is written again with each commit and has little that can be compressed: trying
-- took the database three times as long as writing it. What is stored stays as it is, and is read as before.
alter table device_state alter column runtime set storage external;

-- Down Migration

alter table device_state alter column runtime set storage extended;
