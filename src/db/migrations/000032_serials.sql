-- Least writer: 0.2.0
-- Up Migration

-- device.serial of the configuration, as `name` is its name: a search need not read all configurations. Written
-- by a trigger, for earlier versions write configurations too.
alter table device add column serial text not null default '';
create function set_device_serial() returns trigger language plpgsql as $$
begin
  new.serial := coalesce(new.configuration->'device'->>'serial', '');
  return new;
exception when data_exception then
  -- A configuration may hold what no text can (U+0000): such a device is found by its name.
  new.serial := '';
  return new;
end $$;
create trigger set_device_serial before insert or update of configuration on device
  for each row execute function set_device_serial();
-- By the trigger.
update device set configuration = configuration where configuration::text like '%"serial"%';

-- What waits for its time and goes when its recipient does: without it such a removal reads the messages of all.
create index notification_planned_contact on notification (contact_id) where state = 'planned';

-- Down Migration

drop index notification_planned_contact;
drop trigger set_device_serial on device;
drop function set_device_serial;
alter table device drop column serial;
