-- Least writer: 0.2.0
-- Up Migration

-- The clock was in doubt: times that it wrote while it was ahead are still to be brought back (src/clock/after-leap.ts).
alter table believed_time add column is_unsettled boolean not null default false;

-- Down Migration

alter table believed_time drop column is_unsettled;
