-- Least writer: 0.2.0
-- Up Migration

-- Of a snooze by a job: the job, and the snooze that it replaced (`untilTs`, `reason`, `by`, `ts`; ms), which comes
-- back if the job is undone. Null: a person snoozed this one alarm, or nothing was replaced.
alter table alarm_snooze
  add column job uuid,
  add column replaced json;

-- Down Migration

alter table alarm_snooze
  drop column job,
  drop column replaced;
