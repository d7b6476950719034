import { doneBy, type DoneBy } from '../audit/audit.ts';
import type { Bus } from '../bus/bus.ts';
import type { Configuration } from '../contract/configuration.ts';
import { checkConfigurationSizes } from '../contract/purpose.ts';
import { sayWarnings, warnOfUnknownTo } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { forEachYielding } from '../lib/event-loop.ts';
import {
  createFairRunner,
  explainRefusal,
  type LimitsOf,
  lockUsage,
  refuseBeyond,
  refuseOversized,
  storeWithin,
} from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { insertDevices, type NewDevice, toStored } from './queries.ts';
import {
  BatchRegistration,
  type ConnectorAddress,
  DescribedDevice,
  DeviceBatch,
  exampleRegistration,
  NewRegistration,
  pickAsked,
  Registration,
} from './schema.ts';
import { deriveToken } from './tokens.ts';

/** Stores a device within the account's quotas; throws `quota-exceeded` or `unauthenticated`. */
type RegisterDevice = (accountId: number, device: NewDevice) => Promise<void>;

/** In the transaction that stores devices with labels: they take the limits of these. */
type TakeLabelLimits = (tx: Sql, accountId: number, uuids: string[]) => Promise<unknown>;

const isLabelled = ({ labels }: NewDevice) => labels.length > 0;

/** Stores devices as `insertDevices` does, with the limits of their labels. */
async function insertWithin(
  tx: Sql,
  accountId: number,
  devices: NewDevice[],
  { quotas, takeLabelLimits }: Pick<RegisterDeviceDeps, 'quotas' | 'takeLabelLimits'>,
): Promise<boolean> {
  if (!(await insertDevices(tx, accountId, devices, quotas))) return false;
  const labelled = devices.filter(isLabelled).map(({ uuid }) => uuid);
  if (labelled.length > 0) await takeLabelLimits(tx, accountId, labelled);
  return true;
}

type Waiting = PromiseWithResolvers<void> & { device: NewDevice };

/** Limits of one statement. */
const maxDevices = 50;
const maxBytes = 1_048_576;

/**
 * Concurrent registrations of one account share a statement: separate ones would each lock the account's counter until
 * their commit, so the commits would run one after the other.
 */
export function createRegistration(
  db: Database,
  quotas: QuotaSettings,
  takeLabelLimits: TakeLabelLimits = async () => undefined,
): RegisterDevice {
  const insert = (accountId: number, devices: NewDevice[]) =>
    devices.some(isLabelled)
      ? db.transaction((tx) => insertWithin(tx, accountId, devices, { quotas, takeLabelLimits }))
      : insertDevices(db, accountId, devices, quotas);
  const queues = new Map<number, Waiting[]>();

  async function storeOne(accountId: number, { device, resolve, reject }: Waiting): Promise<void> {
    const adding = { devices: 1, devicesPerDay: 1 };
    const store = async () => (await insert(accountId, [device])) || null;
    await storeWithin(db, { accountId, quotas, adding }, store).then(() => resolve(), reject);
  }

  /** Stores all of them; if that exceeds a quota or one of them fails, retries each half by itself. */
  async function storeAll(accountId: number, batch: Waiting[]): Promise<void> {
    const [first] = batch;
    if (batch.length === 1 && first) return storeOne(accountId, first);
    const devices = batch.map(({ device }) => device);
    try {
      if (await insert(accountId, devices)) {
        for (const { resolve } of batch) resolve();
        return;
      }
    } catch (error) {
      if (error instanceof DomainError) {
        for (const { reject } of batch) reject(error);
        return;
      }
    }
    const half = Math.ceil(batch.length / 2);
    await storeAll(accountId, batch.slice(0, half));
    await storeAll(accountId, batch.slice(half));
  }

  async function storeWaiting(accountId: number, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) await storeAll(accountId, takeBatch(queue));
    queues.delete(accountId);
  }

  return (accountId, device) => {
    const waiting = { ...Promise.withResolvers<void>(), device };
    const queue = queues.get(accountId);
    if (queue) queue.push(waiting);
    else {
      const begun = [waiting];
      queues.set(accountId, begun);
      void storeWaiting(accountId, begun);
    }
    return waiting.promise;
  };
}

/** Takes as many from the front as fit into one statement. */
function takeBatch(queue: Waiting[]): Waiting[] {
  let bytes = 0;
  let count = 0;
  while (count < queue.length && count < maxDevices) {
    bytes += queue[count]?.device.configuration.length ?? 0;
    if (count > 0 && bytes > maxBytes) break;
    count += 1;
  }
  return queue.splice(0, count);
}

/** Devices in one request. */
const mostDevices = 1_000;

/** What is stored of a batch for a repeated request: uuid and connector of each, in the shortest form. */
type Made = { devices: [uuid: string, connectorId: number][]; timestamp: number };

/** Registers many devices, or none of them. */
export function batchRoute(deps: RegisterDeviceDeps): Route {
  const { bus, limitsOf } = deps;
  const runFairly = createFairRunner(1);
  return defineRoute({
    name: 'registerDevices',
    scope: 'devices:write',
    isOfWholeAccount: true,
    method: 'post',
    path: '/v2/devices/batch',
    summary: 'Register many devices',
    description:
      `Up to ${mostDevices} devices in a body of at most 4 MiB. Either all are registered or ` +
      'none. The answer lists them in the order of the request. The path of a problem or ' +
      'warning begins with the index of the device.',
    tag: 'Devices',
    auth: 'account',
    takesKey: true,
    body: DeviceBatch,
    example: { devices: [exampleRegistration, exampleRegistration] },
    listBody: { member: 'devices', most: mostDevices, limitBytes: 4_194_304 },
    answerBytes: 1_048_576,
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
          insertBatch(deps, { accountId, devices }, async (tx) => keep?.(tx, made));
        await runFairly(accountId, store);
        return made;
      });
      tellOfNew(
        bus,
        accountId,
        body.devices.some(({ labels }) => labels.length > 0),
      );
      const described: ReturnType<typeof describeRegistered>[] = [];
      await forEachYielding(made.devices, ([uuid, connectorId]) => {
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
  await forEachYielding(devices.entries(), ([index, device]) => {
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
  await forEachYielding(registrations.entries(), ([index, { protocol: asked, labels, ...one }]) => {
    const uuid = newUuid();
    const path = `/devices/${index}/protocol`;
    const { id: connectorId } = pickAsked(connectors, uuid, asked, path);
    devices.push({ uuid, connectorId, ...toStored(one), labels, secretId, ...by });
  });
  return devices;
}

type Batch = { accountId: number; devices: readonly NewDevice[] };
const maxLength = 262_144;

/**
 * Stores all of them or none. Throws `quota-exceeded` before any is stored, or `unauthenticated`. `last` runs at the
 * end of the transaction.
 */
async function insertBatch(
  deps: RegisterDeviceDeps,
  { accountId, devices }: Batch,
  last: (tx: Sql) => Promise<void>,
): Promise<void> {
  const { db, quotas } = deps;
  const adding = { devices: devices.length, devicesPerDay: devices.length };
  await db.transaction(async (tx) => {
    await lockUsage(tx, accountId);
    await refuseBeyond(tx, { accountId, quotas, adding });
    for (const some of piecesOf(devices))
      if (!(await insertWithin(tx, accountId, some, deps)))
        throw await explainRefusal(tx, { accountId, quotas, adding: { devices: some.length } });
    await last(tx);
  });
}

function* piecesOf(devices: readonly NewDevice[]): Generator<NewDevice[]> {
  let piece: NewDevice[] = [];
  let length = 0;
  for (const device of devices) {
    if (
      piece.length === maxDevices ||
      (piece.length > 0 && length + device.configuration.length > maxLength)
    ) {
      yield piece;
      [piece, length] = [[], 0];
    }
    piece.push(device);
    length += device.configuration.length;
  }
  if (piece.length > 0) yield piece;
}

export type RegisterDeviceDeps = {
  db: Database;
  bus: Pick<Bus, 'publish'>;
  /** The keys that device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The identifier of the secret of the newest key. */
  secretId: string;
  /** Where devices connect; called at each registration. */
  listConnectors: () => readonly ConnectorAddress[];
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  /** Makes the uuid of a new device. */
  newUuid: () => string;
  takeLabelLimits: TakeLabelLimits;
};

/** What is stored of a registration; the rest of the answer follows from it. */
type Registered = { uuid: string; connectorId: number };

/** Registers a device, within the account's quotas. */
export function registerRoute(deps: RegisterDeviceDeps): Route {
  const { db, bus, secretId, listConnectors, quotas, limitsOf, newUuid } = deps;
  const registerDevice = createRegistration(db, quotas, deps.takeLabelLimits);
  const runFairly = createFairRunner(2);
  return defineRoute({
    name: 'registerDevice',
    scope: 'devices:write',
    isOfWholeAccount: true,
    method: 'post',
    path: '/v2/devices',
    summary: 'Register Device',
    tag: 'Devices',
    auth: 'account',
    takesKey: true,
    body: NewRegistration,
    example: exampleRegistration,
    response: Registration,
    errors: [403],
    warnOf: warnOfUnknownTo(NewRegistration, DescribedDevice),
    handler: async ({
      account,
      body: { protocol: asked, labels, ...body },
      request,
      warnings,
      once,
    }) => {
      const { accountId } = account;
      refuseOversized(checkConfigurationSizes(body, limitsOf(accountId)));
      const { timestamp, ...made } = await once<Registered & { timestamp: number }>(
        async (keep) => {
          const uuid = newUuid();
          const connectorId = pickAsked(listConnectors(), uuid, asked).id;
          const by = doneBy(account, request);
          const device = { uuid, connectorId, ...toStored(body), labels, secretId, ...by };
          const made = { uuid, connectorId, timestamp: request.now() };
          if (!keep) {
            await registerDevice(accountId, device);
            return { ...made, timestamp: request.now() };
          }
          const store = () =>
            db.transaction(async (tx) => {
              if (!(await insertWithin(tx, accountId, [device], deps))) return null;
              await keep(tx, made);
              return made;
            });
          const adding = { devices: 1, devicesPerDay: 1 };
          return runFairly(accountId, () => storeWithin(db, { accountId, quotas, adding }, store));
        },
      );
      tellOfNew(bus, accountId, labels.length > 0);
      return { ...describeRegistered(deps, made), timestamp, ...sayWarnings(warnings) };
    },
  });
}

/** Devices were registered: lists are read again, and a stream of a label gets more devices. */
function tellOfNew(bus: RegisterDeviceDeps['bus'], accountId: number, areLabelled: boolean): void {
  bus.publish(areLabelled ? 'labels' : 'fleet', { accountId });
}

/** What a new device needs to know, except the time of registration. */
function describeRegistered(
  { keys, listConnectors }: Pick<RegisterDeviceDeps, 'keys' | 'listConnectors'>,
  { uuid, connectorId }: Registered,
) {
  return {
    ...describeConnector(listConnectors(), { uuid, connectorId }),
    deviceAuthUuid: uuid,
    deviceAuthToken: deriveToken(keys, uuid, 1),
  };
}

/** Where a device connects. */
export function describeConnector(
  connectors: readonly ConnectorAddress[],
  { uuid, connectorId }: Registered,
) {
  // If its connector is no longer configured, answers as for a new device.
  const connector =
    connectors.find(({ id }) => id === connectorId) ?? pickAsked(connectors, uuid, undefined);
  const { id, name, protocol, host, port } = connector;
  return { connectorId: id, connectorName: name, protocol, host, port };
}
