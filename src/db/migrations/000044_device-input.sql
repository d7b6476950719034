-- Least writer: 0.2.0
-- Up Migration

-- What a device was given besides measurements: with these it can be played again. `arrived` and `nth` (from 0) are its
-- place among its measurements (migration 000041), in the order of evaluation. After a clock that was set back a place
-- can come twice, so there is no key. What each kind's body has: `src/ingest/rules/device-input.ts`.
create table device_input (
  device_id bigint not null references device on delete cascade,
  arrived bigint not null,
  nth smallint not null,
  kind text not null,
  body json
);
create index device_input_place on device_input (device_id, arrived, nth);
create index device_input_arrived on device_input (arrived);

-- In which hours (since the Unix epoch) something of a device arrived more than an hour late, and the oldest time that
-- did, ms.
create table late_arrival (
  device_id bigint not null references device on delete cascade,
  hour integer not null,
  oldest_ts bigint not null,
  primary key (device_id, hour)
);
create index late_arrival_hour on late_arrival (hour);

-- What of the device's configuration and profiles was last noted in `device_input`; null: it never had a profile.
alter table device_state add column noted text;

-- Down Migration

drop table device_input;
drop table late_arrival;
alter table device_state drop column noted;
