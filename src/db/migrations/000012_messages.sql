-- Least writer: 0.2.0
-- Up Migration

-- Of one message few rejections are kept one by one, the others as a number in one more row.
alter table rejection add column more integer;
-- A flood is removed as fast as it comes; what it leaves behind is cleared before it has grown large.
alter table rejection set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- How many rejections a device has, and the bytes of their texts. A device that is not here was never
-- counted: that is done with its next rejection.
create table rejection_count (
  device_id bigint primary key references device on delete cascade,
  count bigint not null,
  bytes bigint not null
) with (fillfactor = 50);

-- Down Migration
drop table rejection_count;
alter table rejection reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
alter table rejection drop column more;
