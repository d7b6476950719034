import { linkNext } from '../http/page.ts';
import { labelsOf } from '../http/rights.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { acknowledgeAlarm, closeAlarm } from './act.ts';
import type { Act } from './act-on.ts';
import { actOf, actRoute } from './act-route.ts';
import { getAlarm, listPage, type ListAlarmsDeps } from './list-alarms.ts';
import { quietRoutes, type QuietRouteDeps } from './quiet-routes.ts';
import { AlarmAnswer, AlarmList, AlarmParams, AlarmQuery } from './schema.ts';

export type AlarmRouteDeps = QuietRouteDeps & ListAlarmsDeps;

/** What is open, and what people do about it; an addition to the specification. */
export function alarmRoutes(deps: AlarmRouteDeps): Route[] {
  return [
    list(deps),
    one(deps),
    onAlarm('acknowledge', 'Acknowledge an alarm', acknowledgeTold, (act, alarmId) =>
      acknowledgeAlarm(deps, act, alarmId),
    ),
    onAlarm('close', 'Close an alarm', closeTold, (act, alarmId) => closeAlarm(deps, act, alarmId)),
    ...quietRoutes(deps),
  ];
}

const acknowledgeTold =
  'It is not told again, repeated or escalated. What is closed or acknowledged already stays as it is.';
const closeTold =
  'Its episode ends with it: the next firing opens another alarm, which is told. Who wants quiet while it ' +
  'lasts acknowledges it or snoozes it. What is closed stays as it is.';

function list(deps: AlarmRouteDeps): Route {
  return defineRoute({
    name: 'listAlarms',
    scope: 'alarms:read',
    method: 'get',
    path: '/v2/alarms',
    summary: 'Get alarms',
    description: 'Newest first; a Link header names the next page.',
    tag: actRoute.tag,
    auth: 'account',
    errors: [],
    responseHeaders: { Link: 'The next page, where there is one.' },
    query: AlarmQuery,
    response: AlarmList,
    room: 1_048_576,
    handler: async ({ account, query, request }) => {
      const { alarms, next } = await listPage(
        deps,
        { accountId: account.accountId, within: labelsOf(account) },
        query,
        request.receivedTs,
      );
      if (next !== null) linkNext(request, { id: next });
      return { alarms, timestamp: request.now() };
    },
  });
}

function one(deps: AlarmRouteDeps): Route {
  return defineRoute({
    name: 'getAlarm',
    scope: 'alarms:read',
    method: 'get',
    path: '/v2/alarms/{alarmId}',
    summary: 'Get an alarm',
    tag: actRoute.tag,
    auth: 'account',
    errors: [404],
    params: AlarmParams,
    response: AlarmAnswer,
    handler: async ({ account, params, request }) => {
      const owner = { accountId: account.accountId, within: labelsOf(account) };
      const alarm = await getAlarm(deps, owner, params.alarmId, request.receivedTs);
      return { alarm, timestamp: request.now() };
    },
  });
}

function onAlarm(
  act: 'acknowledge' | 'close',
  summary: string,
  description: string,
  work: (act: Act, alarmId: number) => Promise<void>,
): Route {
  return defineRoute({
    name: `${act}Alarm`,
    ...actRoute,
    method: 'post',
    path: `/v2/alarms/{alarmId}/${act}`,
    summary,
    description,
    params: AlarmParams,
    handler: async ({ account, params, request }) => {
      await work(actOf(account, request), params.alarmId);
      return { timestamp: request.now() };
    },
  });
}
