-- Least writer: 0.2.0
-- Up Migration

-- What an earlier version changed beside 000048, after its rows were read and before its trigger was there.
update device_profile_span s
   set until_at = dp.changed_at
  from device_profile dp
 where dp.device_id = s.device_id and dp.profile_id = s.profile_id
   and s.until_at is null and dp.state <> 'current';
insert into device_profile_span (device_id, profile_id, from_at)
select device_id, profile_id, changed_at
  from device_profile dp
 where state = 'current'
   and not exists (select from device_profile_span s
                    where s.device_id = dp.device_id and s.profile_id = dp.profile_id and s.until_at is null);

-- Down Migration
