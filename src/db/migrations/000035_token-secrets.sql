-- Least writer: 0.2.0
-- Up Migration

-- Of which secret the token is that the device used last: the first 8 characters of its check value; '' where
-- nobody knows. A device that is registered has the secret that its token was made with. The default is for
-- earlier versions that run beside this one, and for the devices there are: they have the older of two secrets until
-- they show a token of the newer one.
do $$
declare
  known text := coalesce((select left(value, 8) from secret_check order by place desc limit 1), '');
begin
  execute format('alter table device add column token_secret text not null default %L', known);
end
$$;

-- Down Migration
alter table device drop column token_secret;
