-- Least writer: 0.2.0
-- Up Migration

-- A job on alarms: their numbers in order, emptied like `devices`; null: a job on devices. Versions up to 0.4.0 take up
-- what is `running` and do not know such jobs, so these are `acting` instead.
alter table job
  add column alarms bigint[],
  drop constraint job_state_check,
  add constraint job_state_check check (state in ('running', 'acting', 'done', 'stopped'));
drop index job_running;
create index job_running on job (served_at, id) where state in ('running', 'acting');

-- Down Migration

drop index job_running;
delete from job where state = 'acting' or alarms is not null;
alter table job
  drop column alarms,
  drop constraint job_state_check,
  add constraint job_state_check check (state in ('running', 'done', 'stopped'));
create index job_running on job (served_at, id) where state = 'running';
