import { DomainError } from '../errors.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams } from '../http/schema.ts';
import { muteDevice, unmuteDevice } from './mute.ts';
import { snoozeAlarm, unsnoozeAlarm } from './quiet.ts';
import type { ActDeps } from './act-on.ts';
import { actOf, actRoute } from './act-route.ts';
import { AlarmParams, exampleQuiet, isAhead, QuietBody } from './schema.ts';

export type QuietRouteDeps = ActDeps & {
  /** Throws `not-found` unless the device is the account's. */
  getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
};

/** For how long nobody is told of an alarm, or of a device. */
export function quietRoutes(deps: QuietRouteDeps): Route[] {
  return [snooze(deps), unsnooze(deps), mute(deps), unmute(deps)];
}

function snooze(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'snoozeAlarm',
    ...actRoute,
    method: 'post',
    path: '/v2/alarms/{alarmId}/snooze',
    summary: 'Snooze an alarm',
    description:
      "Nobody is told of its device's event until then, of this alarm and of later ones. An announcement and " +
      'an acknowledgement are taken back: what is still true then is told. Another profile ends it.',
    params: AlarmParams,
    body: QuietBody,
    example: exampleQuiet,
    handler: async ({ account, params, body, request }) => {
      const quiet = quietOf(body, request);
      await snoozeAlarm(deps, actOf(account, request), params.alarmId, quiet);
      return { timestamp: request.now() };
    },
  });
}

function unsnooze(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'unsnoozeAlarm',
    ...actRoute,
    method: 'delete',
    path: '/v2/alarms/{alarmId}/snooze',
    summary: 'End a snooze',
    description: 'An alarm that is open and was not told is told at once.',
    params: AlarmParams,
    handler: async ({ account, params, request }) => {
      await unsnoozeAlarm(deps, actOf(account, request), params.alarmId);
      return { timestamp: request.now() };
    },
  });
}

function mute(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'muteDevice',
    ...actRoute,
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/mute',
    summary: 'Mute a device',
    description:
      'Nobody is told of any of its events until then, notices included. What was told stays told; what was ' +
      'planned is put off to its end.',
    params: DeviceParams,
    body: QuietBody,
    example: exampleQuiet,
    handler: async ({ account, params, body, request }) => {
      const quiet = quietOf(body, request);
      await muteDevice(deps, await targetOf(deps, account, params.deviceAuthUuid, request), quiet);
      return { timestamp: request.now() };
    },
  });
}

function unmute(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'unmuteDevice',
    ...actRoute,
    method: 'delete',
    path: '/v2/devices/{deviceAuthUuid}/mute',
    summary: 'End the mute of a device',
    description: 'What is open and was not told is told at once.',
    params: DeviceParams,
    handler: async ({ account, params, request }) => {
      await unmuteDevice(deps, await targetOf(deps, account, params.deviceAuthUuid, request));
      return { timestamp: request.now() };
    },
  });
}

async function targetOf(
  { getDeviceId }: QuietRouteDeps,
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
