import { doneBy } from '../audit/audit.ts';
import type { Bus } from '../bus/bus.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { DeviceParams, MessageResponse } from '../http/schema.ts';
import type { Exports } from '../quotas/exports.ts';
import { type ActionDeps, actionsRoute, labelsRoute, previewRoute } from './actions.ts';
import { batchRoute, type RegisterDeviceDeps, registerRoute } from './register.ts';
import {
  configureRoutes,
  describeRoute,
  deviceRoute,
  evaluationRoute,
  type FindEvaluationContext,
  type FindNewestOf,
  type OnConfigured,
} from './device.ts';
import { listRoute } from './list.ts';
import { noSuchDevice } from './schema.ts';
import type { DeviceRemoval } from './remove.ts';
import { rejectionsRoute } from './rejections.ts';
import { refusedLoginsRoute, removedLoginsRoute } from './refused-logins.ts';
import { tokenRoute } from './tokens.ts';

type DeviceRouteDeps = RegisterDeviceDeps &
  ActionDeps & {
    bus: Bus;
    /** False if the account has no such device. */
    removeDevice: DeviceRemoval['removeDevice'];
    findNewest: FindNewestOf;
    onConfigured: OnConfigured;
    /** Absent: explanations omit alarms and late measurements. */
    findEvaluationContext?: FindEvaluationContext;
    /** The quota `exports`: how many lists may be read and sent at once. */
    exports: Pick<Exports, 'run'>;
  };

const tag = 'Devices';

/** Specification section 4.3. */
export function deviceRoutes(deps: DeviceRouteDeps): Route[] {
  return [
    registerRoute(deps),
    // Before the routes that have a uuid in this place.
    labelsRoute(deps),
    removedLoginsRoute(deps),
    batchRoute(deps),
    previewRoute(deps),
    actionsRoute(deps),
    listRoute(deps),
    deviceRoute(deps),
    describeRoute(deps),
    ...configureRoutes(deps),
    remove(deps),
    tokenRoute(deps),
    rejectionsRoute(deps),
    refusedLoginsRoute(deps),
    evaluationRoute(deps),
  ];
}

function remove({ removeDevice }: DeviceRouteDeps): Route {
  return defineRoute({
    name: 'removeDevice',
    scope: 'devices:write',
    method: 'delete',
    path: '/v2/devices/{deviceAuthUuid}',
    summary: 'Remove device',
    tag,
    auth: 'account',
    params: DeviceParams,
    response: MessageResponse,
    errors: [404],
    handler: async ({ account, params, request }) => {
      const { accountId } = account;
      const by = doneBy(account, request);
      const isRemoved = await removeDevice(accountId, params.deviceAuthUuid, by);
      if (!isRemoved) throw noSuchDevice();
      return { timestamp: request.now(), message: 'The device and its data were removed.' };
    },
  });
}
