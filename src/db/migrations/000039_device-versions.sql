-- Least writer: 0.2.0
-- Up Migration

-- device.swName, device.swVersion and device.hwVersion of the configuration, so that filters need not read all of it. A
-- trigger writes them, because versions up to 0.4.0 also write configurations.
alter table device
  add column sw_name text not null default '',
  add column sw_version text not null default '',
  add column hw_version text not null default '';
create function set_device_versions() returns trigger language plpgsql as $$
begin
  new.sw_name := coalesce(new.configuration->'device'->>'swName', '');
  new.sw_version := coalesce(new.configuration->'device'->>'swVersion', '');
  new.hw_version := coalesce(new.configuration->'device'->>'hwVersion', '');
  return new;
exception when data_exception then
  -- A configuration may hold what no text can (U+0000).
  new.sw_name := '';
  new.sw_version := '';
  new.hw_version := '';
  return new;
end $$;
create trigger set_device_versions before insert or update of configuration on device
  for each row execute function set_device_versions();
update device set configuration = configuration;

-- Down Migration

drop trigger set_device_versions on device;
drop function set_device_versions();
alter table device
  drop column sw_name,
  drop column sw_version,
  drop column hw_version;
