-- Least writer: 0.2.0
-- Up Migration

alter table job
  -- The first devices that keep what they had, which is no failure, and how many more there are.
  add column kept json not null default '[]',
  add column kept_more integer not null default 0;

-- Down Migration

alter table job drop column kept, drop column kept_more;
