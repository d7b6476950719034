-- Least writer: 0.2.0
-- Up Migration

-- What a device's evidence has taken in since it was written as a whole: where that is long, each commit adds
-- the measurements that were evaluated, and now and then the whole is written again. Rows count where the
-- `log` in `device_state.runtime` is their `base`: a program of an earlier version writes none, and so ends
-- them; others are left behind by it, and go when the whole is written next.
create table evidence_log (
  device_id bigint not null references device_state on delete cascade,
  -- The row's version that they were computed from.
  version bigint not null,
  base bigint not null,
  measurements text not null,
  primary key (device_id, version)
);
-- They are short, and gone soon: to try to compress them would take longer than to write them.
alter table evidence_log alter column measurements set storage external;

-- Down Migration

drop table evidence_log;
