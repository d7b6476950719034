-- Least writer: 0.2.0
-- Up Migration

-- The functions fail for no purposes, or these could not be installed. The first versions stored escapes that
-- PostgreSQL cannot turn into text: nothing is said of such purposes. They name no other function of this schema, so
-- that a dump can be restored.

-- The plain limits of purposes: of each event that opens an alarm and has one cause, which compares single values
-- with one number. A list of {sId, puId, stId, evId, name, above, below}.
create function plain_limits(purposes json) returns json language sql immutable as $$
  select coalesce(json_agg(json_build_object(
           'sId', cause ->> 'sId', 'puId', purpose -> 'puId', 'stId', state -> 'stId', 'evId', event -> 'evId',
           'name', coalesce(event ->> 'name', ''),
           'above', cause #> '{thresholds,isGt}', 'below', cause #> '{thresholds,isLt}')), '[]')
    from jsonb_path_query(
           case when purposes::text ~ '\\u(0000|d[89a-f])' then '[]' else purposes::jsonb end, '$[*]') purpose
   cross join lateral jsonb_path_query(purpose, '$.states[*]') state
   cross join lateral jsonb_path_query(state, '$.events[*]') event
   cross join lateral jsonb_path_query(event, '$.causes[*]') cause
   where event #> '{causes,1}' is null
     and coalesce(
           event #>> '{actions,alarm}',
           ((event #>> '{actions,cloud,sendPush}' is not distinct from 'true' or event #> '{actions,sms}' is not null)
             and event #>> '{actions,engine,gotoStId}' is distinct from purpose ->> 'initStId')::text) = 'true'
     and (select count(*) = 1 from jsonb_path_query(cause, '$.thresholds.keyvalue()', silent => true))
     and 'number' in (jsonb_typeof(cause #> '{thresholds,isGt}'), jsonb_typeof(cause #> '{thresholds,isLt}'))
     and coalesce(cause #>> '{threshold,negate}', 'false') = 'false'
     and coalesce(cause #>> '{threshold,relative}', 'false') = 'false'
     and cause #> '{threshold,over}' is null
$$;

-- The names of the states of purposes that have more than one: a list of {puId, stId, name}.
create function state_names(purposes json) returns json language sql immutable as $$
  select coalesce(json_agg(json_build_object(
           'puId', purpose -> 'puId', 'stId', state -> 'stId', 'name', state ->> 'name')), '[]')
    from jsonb_path_query(
           case when purposes::text ~ '\\u(0000|d[89a-f])' then '[]' else purposes::jsonb end, '$[*]') purpose
   cross join lateral jsonb_path_query(purpose, '$.states[*]') state
   where purpose #> '{states,1}' is not null
$$;

-- Written once with a content: lists of devices would otherwise take whole purposes apart for each request.
alter table profile_content
  add column limits json not null generated always as (plain_limits(purposes)) stored,
  add column state_names json not null generated always as (state_names(purposes)) stored;

-- Down Migration

alter table profile_content
  drop column limits,
  drop column state_names;
drop function plain_limits(json);
drop function state_names(json);
