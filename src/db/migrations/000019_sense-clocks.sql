-- Least writer: 0.2.0
-- Up Migration

-- Which measurements of a sense are too late depends on the newest one that was not stamped ahead of its
-- arrival. Mostly that is the history's newest, and the sense has no row here. An empty `s_id`: what the device
-- was told of its clock.
create table sense_clock (
  device_id bigint not null references device_state on delete cascade,
  s_id text collate "C" not null,
  -- A sense's counts for as long as the history's newest is the one that it names.
  state json not null,
  primary key (device_id, s_id)
);

-- Down Migration

drop table sense_clock;
