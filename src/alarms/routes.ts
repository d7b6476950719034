import { doneBy } from '../audit/entry.ts';
import { DomainError } from '../errors.ts';
import { linkNext } from '../http/page.ts';
import { labelsOf } from '../http/rights.ts';
import { defineRoute, type Account, type RequestInfo, type Route } from '../http/route.ts';
import { DeviceParams, TimestampResponse } from '../http/schema.ts';
import {
  acknowledgeAlarm,
  closeAlarm,
  muteDevice,
  snoozeAlarm,
  unmuteDevice,
  unsnoozeAlarm,
} from './act.ts';
import type { Act, ActDeps } from './act.ts';
import { createListAlarms, type ListDeps } from './list-alarms.ts';
import { AlarmList, AlarmParams, AlarmQuery, isAhead, QuietBody } from './schema.ts';

export type AlarmRouteDeps = ActDeps &
  ListDeps & {
    /** Throws `not-found` unless the device is the account's. */
    getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
  };

const tag = 'Alarms';

/** What is open, and what people do about it; an addition to the specification. */
export function alarmRoutes(deps: AlarmRouteDeps): Route[] {
  return [
    list(deps),
    onAlarm('acknowledge', 'Acknowledge an alarm', acknowledgeTold, (act, alarmId) =>
      acknowledgeAlarm(deps, act, alarmId),
    ),
    onAlarm('close', 'Close an alarm', closeTold, (act, alarmId) => closeAlarm(deps, act, alarmId)),
    snooze(deps),
    unsnooze(deps),
    mute(deps),
    unmute(deps),
  ];
}

const acknowledgeTold =
  'It is not told again, repeated or escalated. What is closed or acknowledged already stays as it is.';
const closeTold =
  'Its episode ends with it: the next firing opens another alarm, which is told. Who wants quiet while it ' +
  'lasts acknowledges it or snoozes it. What is closed stays as it is.';

function list(deps: AlarmRouteDeps): Route {
  const listAlarms = createListAlarms(deps);
  return defineRoute({
    name: 'listAlarms',
    scope: 'alarms:read',
    method: 'get',
    path: '/v2/alarms',
    summary: 'Get alarms',
    description: 'Newest first; a Link header names the next page.',
    tag,
    auth: 'account',
    errors: [],
    responseHeaders: { Link: 'The next page, where there is one.' },
    query: AlarmQuery,
    response: AlarmList,
    room: 1_048_576,
    handler: async ({ account, query, request }) => {
      const { alarms, next } = await listAlarms(
        { accountId: account.accountId, within: labelsOf(account) },
        query,
        request.receivedTs,
      );
      if (next !== null) linkNext(request, { id: next });
      return { alarms, timestamp: request.now() };
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
    scope: 'alarms:write',
    method: 'post',
    path: `/v2/alarms/{alarmId}/${act}`,
    summary,
    description,
    tag,
    auth: 'account',
    errors: [404],
    params: AlarmParams,
    response: TimestampResponse,
    handler: async ({ account, params, request }) => {
      await work(actOf(account, request), params.alarmId);
      return { timestamp: request.now() };
    },
  });
}

function snooze(deps: AlarmRouteDeps): Route {
  return defineRoute({
    name: 'snoozeAlarm',
    scope: 'alarms:write',
    method: 'post',
    path: '/v2/alarms/{alarmId}/snooze',
    summary: 'Snooze an alarm',
    description:
      "Nobody is told of its device's event until then, of this alarm and of later ones. An announcement and " +
      'an acknowledgement are taken back: what is still true then is told. Another profile ends it.',
    tag,
    auth: 'account',
    errors: [404],
    params: AlarmParams,
    body: QuietBody,
    response: TimestampResponse,
    handler: async ({ account, params, body, request }) => {
      const quiet = quietOf(body, request);
      await snoozeAlarm(deps, actOf(account, request), params.alarmId, quiet);
      return { timestamp: request.now() };
    },
  });
}

function unsnooze(deps: AlarmRouteDeps): Route {
  return defineRoute({
    name: 'unsnoozeAlarm',
    scope: 'alarms:write',
    method: 'delete',
    path: '/v2/alarms/{alarmId}/snooze',
    summary: 'End a snooze',
    description: 'An alarm that is open and was not told is told at once.',
    tag,
    auth: 'account',
    errors: [404],
    params: AlarmParams,
    response: TimestampResponse,
    handler: async ({ account, params, request }) => {
      await unsnoozeAlarm(deps, actOf(account, request), params.alarmId);
      return { timestamp: request.now() };
    },
  });
}

function mute(deps: AlarmRouteDeps): Route {
  return defineRoute({
    name: 'muteDevice',
    scope: 'alarms:write',
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/mute',
    summary: 'Mute a device',
    description:
      'Nobody is told of any of its events until then, notices included. What was told stays told; what was ' +
      'planned is put off to its end.',
    tag,
    auth: 'account',
    errors: [404],
    params: DeviceParams,
    body: QuietBody,
    response: TimestampResponse,
    handler: async ({ account, params, body, request }) => {
      const quiet = quietOf(body, request);
      await muteDevice(deps, await targetOf(deps, account, params.deviceAuthUuid, request), quiet);
      return { timestamp: request.now() };
    },
  });
}

function unmute(deps: AlarmRouteDeps): Route {
  return defineRoute({
    name: 'unmuteDevice',
    scope: 'alarms:write',
    method: 'delete',
    path: '/v2/devices/{deviceAuthUuid}/mute',
    summary: 'End the mute of a device',
    description: 'What is open and was not told is told at once.',
    tag,
    auth: 'account',
    errors: [404],
    params: DeviceParams,
    response: TimestampResponse,
    handler: async ({ account, params, request }) => {
      await unmuteDevice(deps, await targetOf(deps, account, params.deviceAuthUuid, request));
      return { timestamp: request.now() };
    },
  });
}

const actOf = (account: Account, request: RequestInfo): Act => ({
  accountId: account.accountId,
  within: labelsOf(account),
  by: doneBy(account, request),
});

async function targetOf(
  { getDeviceId }: AlarmRouteDeps,
  account: Account,
  uuid: string,
  request: RequestInfo,
) {
  const deviceId = await getDeviceId(account.accountId, uuid);
  return { ...actOf(account, request), deviceId, uuid };
}

/** Throws `invalid-input` for a time that has passed, or is too far away. */
function quietOf({ untilTs, reason }: QuietBody, { receivedTs }: RequestInfo) {
  if (isAhead(untilTs, receivedTs)) return { untilTs, reason: reason ?? null };
  const problems = [{ path: '/untilTs', message: 'is not within the next five years' }];
  throw new DomainError('invalid-input', 'The request is not valid.', { problems });
}
