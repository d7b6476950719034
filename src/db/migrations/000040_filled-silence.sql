-- Least writer: 0.2.0
-- Up Migration

-- Of a silence: a measurement that came late, and shows that its sense was not silent for so long; null: none is known.
alter table alarm add column filled_at timestamptz;

-- Down Migration

alter table alarm drop column filled_at;
