import { doneBy, type DoneBy } from '../audit/entry.ts';
import type { Configuration } from '../contract/configuration.ts';
import { checkConfigurationSizes } from '../contract/sizes.ts';
import { warnOfUnknownTo } from '../contract/unknown-members.ts';
import { sayWarnings } from '../contract/warnings.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { inTurns } from '../lib/in-turns.ts';
import { createInTurn } from '../quotas/in-turn.ts';
import { refuseOversized } from '../quotas/refuse.ts';
import { pickAsked } from './pick-connector.ts';
import { nameOf, type NewDevice } from './queries.ts';
import { insertBatch } from './register-batch.ts';
import {
  describeRegistered,
  tellOfNew,
  type RegisterDeviceDeps,
  type Registered,
} from './register-route.ts';
import {
  BatchRegistration,
  DeviceBatch,
  exampleRegistration,
  NewRegistration,
} from './registration-schema.ts';
import { DescribedDevice } from './schema.ts';

/** Devices of one request. */
const mostDevices = 1_000;

/** What is written down of a batch: identifier and connector of each, as short as can be. */
type Made = { devices: [uuid: string, connectorId: number][]; timestamp: number };

/** Registers many devices, or none of them. */
export function batchRoute(deps: RegisterDeviceDeps): Route {
  const { db, bus, quotas, limitsOf } = deps;
  const inTurn = createInTurn(1);
  return defineRoute({
    name: 'registerDevices',
    scope: 'devices:write',
    isOfWholeAccount: true,
    method: 'post',
    path: '/v2/devices/batch',
    summary: 'Register many devices',
    description:
      `Up to ${mostDevices} of them, in a body of 4 MiB at most: all or none. The answer has them in the ` +
      "order of the request. A problem's path, and a warning's, begins with the place of the device.",
    tag: 'Devices',
    auth: 'account',
    takesKey: true,
    body: DeviceBatch,
    example: { devices: [exampleRegistration, exampleRegistration] },
    listBody: { member: 'devices', most: mostDevices, limitBytes: 4_194_304 },
    room: 1_048_576,
    response: BatchRegistration,
    errors: [403],
    warnOf: warnOfUnknownTo(NewRegistration, DescribedDevice),
    handler: async ({ account, body, request, warnings, once }) => {
      const { accountId } = account;
      await checkSizes(body.devices, limitsOf(accountId));
      const made = await once<Made>(async (keep) => {
        const devices = await prepare(deps, body.devices, doneBy(account, request));
        const timestamp = request.now();
        const registered = devices.map(({ uuid, connectorId }): Made['devices'][number] => [
          uuid,
          connectorId,
        ]);
        const made = { devices: registered, timestamp };
        const store = () =>
          insertBatch(db, { accountId, devices, quotas }, async (tx) => keep?.(tx, made));
        await inTurn(accountId, store);
        return made;
      });
      tellOfNew(
        bus,
        accountId,
        body.devices.some(({ labels }) => labels.length > 0),
      );
      const described: ReturnType<typeof describeRegistered>[] = [];
      await inTurns(made.devices, ([uuid, connectorId]) => {
        const registered: Registered = { uuid, connectorId };
        described.push(describeRegistered(deps, registered));
      });
      return { devices: described, timestamp: made.timestamp, ...sayWarnings(warnings) };
    },
  });
}

async function checkSizes(
  devices: readonly Configuration[],
  sizes: Parameters<typeof checkConfigurationSizes>[1],
): Promise<void> {
  const problems: ReturnType<typeof checkConfigurationSizes> = [];
  await inTurns(devices.entries(), ([index, device]) => {
    for (const one of checkConfigurationSizes(device, sizes))
      problems.push({ ...one, path: `/devices/${index}${one.path}` });
  });
  refuseOversized(problems);
}

async function prepare(
  { secretId, listConnectors, newUuid }: RegisterDeviceDeps,
  registrations: readonly NewRegistration[],
  by: DoneBy,
): Promise<NewDevice[]> {
  const connectors = listConnectors();
  const devices: NewDevice[] = [];
  await inTurns(registrations.entries(), ([index, { protocol: asked, labels, ...one }]) => {
    const uuid = newUuid();
    const path = `/devices/${index}/protocol`;
    const { id: connectorId } = pickAsked(connectors, uuid, asked, path);
    const configuration = JSON.stringify(one);
    const name = nameOf(one);
    devices.push({ uuid, connectorId, configuration, name, labels, secretId, ...by });
  });
  return devices;
}
