import { z } from 'zod';
import { doneBy, insertEntry } from '../audit/audit.ts';
import type { Bus } from '../bus/bus.ts';
import { Configuration, sensesOf } from '../contract/configuration.ts';
import { awaitingAnswer, type ProfileState } from '../contract/profile.ts';
import { checkConfigurationSizes, type Purpose } from '../contract/purpose.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import { sayWarnings, SomeWarnings, warnOfUnknownTo } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import { jsonAsText, type Sql, textList, unseenArray } from '../db/sql.ts';
import { compileProfile } from '../engine/compile.ts';
import {
  type EvaluationContext,
  type AskedAt,
  describeEvaluation,
  Description,
  explain,
} from '../engine/explain.ts';
import { type LastSeen, listenedSince } from '../engine/last-seen.ts';
import { replay, type StoredLog, type StoredRuntime } from '../engine/runtime-codec.ts';
import { startRuntime } from '../engine/runtime.ts';
import { DomainError } from '../errors.ts';
import { jsonText } from '../http/answer.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { DeviceParams, timestamp, TimestampResponse } from '../http/schema.ts';
import { coalesce } from '../lib/coalesce.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import { isUuid } from '../lib/text.ts';
import { type LimitsOf, refuseOversized } from '../quotas/quotas.ts';
import {
  configurationVersions,
  findVersions,
  noSuchVersion,
  ReasonQuery,
  reasonOf,
  versionNumber,
  versionRoutes,
  type WrittenBy,
} from '../versions/versions.ts';
import { connectorsById, findDevices, toFound } from './list.ts';
import { replaceConfigurations } from './queries.ts';
import { describeConnector, type RegisterDeviceDeps } from './register.ts';
import { DescribedDevice, exampleConfiguration, noSuchDevice, OneDevice } from './schema.ts';

/** One device: its entry in the list, its connector and its profiles. */
export function deviceRoute({
  db,
  keys,
  listConnectors,
}: Pick<RegisterDeviceDeps, 'keys' | 'listConnectors'> & { db: Sql }): Route {
  return defineRoute({
    name: 'getDevice',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}',
    summary: 'Get a device',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: OneDevice,
    secrets: 'sessions',
    errors: [404],
    handler: async ({ account, params, request }) => {
      const { accountId } = account;
      const uuid = params.deviceAuthUuid;
      const labels = labelsOf(account);
      const filter = { accountId, labels, nowTs: request.now(), uuid, intermittent: [] };
      const [[row], facts] = await Promise.all([
        findDevices(db, filter, 1),
        findDeviceFacts(db, accountId, uuid),
      ]);
      if (!row || !facts) throw noSuchDevice();
      const { connectorId, ...rest } = facts;
      return {
        // A key that may read devices must not get their credentials.
        device: toFound(account.key ? null : keys, row, connectorsById(listConnectors())),
        connector: describeConnector(listConnectors(), { uuid, connectorId }),
        ...rest,
        timestamp: request.now(),
      };
    },
  });
}

type ProfileOfDevice = {
  pId: string;
  state: ProfileState;
  text?: string;
  engine: 'service' | 'device';
  installedTs: number;
  ts: number;
};

type DeviceFacts = {
  connectorId: number;
  registeredTs: number;
  configuredTs: number;
  previousToken: boolean;
  profiles: ProfileOfDevice[];
};

/** What is known of one device besides its entry in the list; null if the account has no such device. */
async function findDeviceFacts(
  sql: Sql,
  accountId: number,
  uuid: string,
): Promise<DeviceFacts | null> {
  const { rows } = await sql.query<DeviceFacts>(
    `
      select d.connector_id as "connectorId", d.created_at as "registeredTs",
             d.configured_at as "configuredTs", d.previous_token_accepted as "previousToken",
             coalesce((
               select json_agg(json_strip_nulls(row_to_json(newest)))
                 from (
                   select p.profile_id as "pId", p.state, p.answer_text as text, p.engine,
                          floor(extract(epoch from i.created_at) * 1000)::bigint as "installedTs",
                          floor(extract(epoch from p.changed_at) * 1000)::bigint as ts
                     from device_profile p
                     join profile i on i.id = p.profile_id
                    where p.device_id = d.id
                    order by i.created_at desc, p.profile_id
                    limit 10) newest), '[]') as profiles
        from device d
       where d.uuid = $2 and d.account_id = $1`,
    [accountId, uuid],
  );
  return rows[0] ?? null;
}

/** Throws `not-found` unless the account has the device and it has one of these labels. */
export async function checkReach(
  sql: Sql,
  accountId: number,
  uuid: string,
  labels: readonly string[],
): Promise<void> {
  if (!isUuid(uuid)) throw noSuchDevice();
  const { rowCount } = await sql.query({
    name: 'device-has-label',
    text: 'select from device where uuid = $1 and account_id = $2 and labels && $3::text[]',
    values: [uuid, accountId, labels],
  });
  if (rowCount === 0) throw noSuchDevice();
}

/** JSON stays the stored text: it is passed on unchanged, and may be megabytes. */
type ConfigurationRow = {
  configuration: string;
  pu_id: number;
  st_id: number;
  state_at: number;
  current_id: string | null;
  current_purposes: string | null;
  current_at: number | null;
  pending_id: string | null;
  pending_purposes: string | null;
  pending_at: number | null;
};

/** Configurations of devices with their profiles and state, by uuid; devices that do not exist are missing. */
async function listConfigurations(
  db: Sql,
  uuids: string[],
): Promise<Map<string, ConfigurationRow & { account_id: number }>> {
  const { rows } = await db.query<ConfigurationRow & { uuid: string; account_id: number }>({
    name: 'devices-configurations',
    text: `
      select d.uuid, d.account_id, d.configuration, s.pu_id, s.st_id, s.state_at,
             c.profile_id as current_id, cc.purposes as current_purposes, c.changed_at as current_at,
             p.profile_id as pending_id, pc.purposes as pending_purposes, pp.created_at as pending_at
        from device d
        join device_state s on s.device_id = d.id
        left join device_profile c on c.device_id = d.id and c.state = 'current'
        left join profile cp on cp.id = c.profile_id
        left join profile_content cc on cc.id = cp.content_id
        left join device_profile p on p.device_id = d.id and p.state in ${textList(awaitingAnswer)}
        left join profile pp on pp.id = p.profile_id
        left join profile_content pc on pc.id = pp.content_id
       where d.uuid = any(${unseenArray('$1', 'uuid')})`,
    values: [uuids],
    types: jsonAsText,
  });
  return new Map(rows.map((row) => [row.uuid, row]));
}

/**
 * Replaces the configuration and invalidates what was computed from the previous one. Returns the device's number, or
 * null if the account has no such device.
 */
async function updateConfiguration(
  tx: Sql,
  accountId: number,
  uuid: string,
  configuration: Configuration,
  by: WrittenBy,
): Promise<number | null> {
  // Locks the state's row first, as ingest does; otherwise the two could deadlock.
  const { rows } = await tx.query<{ deviceId: number }>(
    `
      update device_state s
         set version = version + 1
        from device d
       where d.uuid = $2 and d.account_id = $1 and s.device_id = d.id
      returning s.device_id as "deviceId"`,
    [accountId, uuid],
  );
  const [found] = rows;
  if (!found) return null;
  await replaceConfigurations(tx, [{ ...found, configuration }], by);
  return found.deviceId;
}

/** A device's configuration, state and profiles. */
export function describeRoute({ db }: { db: Sql }): Route {
  const describeDevice = createDescribeDevice(db);
  return defineRoute({
    name: 'getDeviceConfiguration',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/configuration',
    summary: 'Get Configuration',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: DescribedDevice,
    errors: [404],
    answerBytes: 4_194_304,
    handler: async ({ account, params, request }) => {
      const uuid = params.deviceAuthUuid;
      const device = await describeDevice(account.accountId, uuid, request.receivedTs);
      if (device === null) throw noSuchDevice();
      return jsonText(device);
    },
  });
}

/** Called in the transaction, with the senses that the device has from now on; `ts` in ms. */
export type OnConfigured = (
  tx: Sql,
  device: DeviceIdentity,
  sIds: string[],
  ts: number,
) => Promise<void>;

type ConfigureDeps = {
  db: Database;
  bus: Bus;
  limitsOf: LimitsOf;
  onConfigured: OnConfigured;
};

/** Replace a device's configuration, and send it to the device; its versions, and restoring one. */
export function configureRoutes(deps: ConfigureDeps): Route[] {
  const { db } = deps;
  return [
    configureRoute(deps),
    restoreRoute(deps),
    ...versionRoutes({
      db,
      versioned: configurationVersions,
      path: '/v2/devices/{deviceAuthUuid}/configuration',
      params: DeviceParams,
      name: 'ConfigurationVersion',
      tag: 'Devices',
      scope: 'devices:read',
      called: "a device's configuration",
      body: Configuration,
      noSuchThing: noSuchDevice,
    }),
  ];
}

function configureRoute(deps: ConfigureDeps): Route {
  return defineRoute({
    name: 'updateDeviceConfiguration',
    scope: 'devices:write',
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/configuration',
    summary: 'Update Configuration',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    query: ReasonQuery,
    body: Configuration,
    example: exampleConfiguration,
    response: TimestampResponse.extend({ warnings: SomeWarnings }),
    errors: [404],
    warnOf: warnOfUnknownTo(Configuration, DescribedDevice),
    handler: async ({ account, params, query, body, request, warnings }) => {
      const uuid = params.deviceAuthUuid;
      await configure(deps, { account, request, uuid, reason: reasonOf(request, query) }, body);
      return { timestamp: request.now(), ...sayWarnings(warnings) };
    },
  });
}

function restoreRoute(deps: ConfigureDeps): Route {
  return defineRoute({
    name: 'restoreConfigurationVersion',
    scope: 'devices:write',
    method: 'post',
    path: '/v2/devices/{deviceAuthUuid}/configuration/versions/{version}/restore',
    summary: "Restore a version of a device's configuration",
    description:
      'Makes a new version with the content of that one, and sends it to the device. 409 if a configuration may no ' +
      'longer be like that.',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams.extend({ version: versionNumber }),
    query: ReasonQuery,
    response: TimestampResponse,
    errors: [404, 409],
    handler: async ({ account, params, query, request }) => {
      const { deviceAuthUuid: uuid, version } = params;
      const place = [account.accountId, uuid] as const;
      const found = await findVersions(deps.db, configurationVersions, place, [version]);
      const text = found.get(version);
      if (text === undefined) throw noSuchVersion(version);
      const read = Configuration.safeParse(JSON.parse(text));
      if (!read.success)
        throw new DomainError('conflict', `Version ${version} is no longer a valid configuration.`);
      const reason = reasonOf(request, query);
      await configure(deps, { account, request, uuid, reason, restored: version }, read.data);
      return { timestamp: request.now() };
    },
  });
}

type Change = {
  account: Account;
  request: RequestInfo;
  uuid: string;
  reason: string | undefined;
  /** The version whose content it gets again. */
  restored?: number;
};

/** Throws `not-found`. */
async function configure(
  { db, bus, limitsOf, onConfigured }: ConfigureDeps,
  { account, request, uuid, reason, restored }: Change,
  configuration: Configuration,
): Promise<void> {
  const { accountId } = account;
  refuseOversized(checkConfigurationSizes(configuration, limitsOf(accountId)));
  const by = { ...doneBy(account, request), reason };
  const deviceId = await db.transaction(async (tx) => {
    const found = await updateConfiguration(tx, accountId, uuid, configuration, by);
    if (found === null) throw noSuchDevice();
    const sIds = [...sensesOf(configuration).keys()];
    await onConfigured(tx, { deviceId: found, uuid, accountId }, sIds, request.receivedTs);
    const { name = '' } = configuration.device;
    const details = {
      deviceAuthUuid: uuid,
      ...(name && { name }),
      ...(restored && { restored }),
      ...(reason && { reason }),
    };
    await insertEntry(tx, accountId, { kind: 'configuration-changed', ...by, details });
    return found;
  });
  bus.publish('device', { deviceId, uuid, push: 'configuration' });
  bus.publish('fleet', { accountId });
  bus.publish('events', { accountIds: [accountId], deviceIds: [deviceId] });
}

/** Returns a `DescribedDevice` as JSON text. */
type DescribeDevice = (
  accountId: number,
  uuid: string,
  timestamp: number,
) => Promise<string | null>;

/**
 * Get Configuration, specification section 2.4; null if the account has no such device. Concurrent requests share a
 * query, which always starts after they have arrived.
 */
function createDescribeDevice(db: Sql): DescribeDevice {
  const configurations = coalesce({
    load: (uuids: string[]) => listConfigurations(db, uuids),
    maxKeys: 100,
    parallel: 2,
  });
  return async (accountId, uuid, timestamp) => {
    const row = await configurations.find(uuid);
    return row?.account_id === accountId ? describe(row, timestamp) : null;
  };
}

/** Joins stored texts without parsing them: replaces the last `}` of `{"device": …, "module": …}` by the rest. */
function describe(row: ConfigurationRow, timestamp: number): string {
  const { configuration } = row;
  const current = profileOf(row.current_id, row.current_purposes, row.current_at);
  const pending = profileOf(row.pending_id, row.pending_purposes, row.pending_at);
  const state = JSON.stringify({ puId: row.pu_id, stId: row.st_id, ts: row.state_at });
  return (
    `${configuration.slice(0, configuration.lastIndexOf('}'))},"currentProfile":${current},` +
    `"pendingProfile":${pending},"state":${state},"timestamp":${timestamp}}`
  );
}

function profileOf(pId: string | null, purposes: string | null, ts: number | null): string {
  if (pId === null || purposes === null || ts === null) return '{}';
  return `{"pId":"${pId}","purposes":${purposes},"ts":${ts}}`;
}

const Evaluation = z.object({
  engine: z.enum(['service', 'device', 'none']).meta({
    description: 'Who evaluates the current profile; `none` if there is no current profile.',
  }),
  evaluation: Description.nullable().meta({
    description: "Null unless the service evaluates the device's profile.",
  }),
  timestamp,
});

/** The newest measurement of each of these senses, by device. */
export type FindNewestOf = (
  sql: Sql,
  wanted: { deviceId: number; sId: string }[],
) => Promise<ReadonlyMap<number, LastSeen>>;

/**
 * What evaluation needs besides the evidence: the alarms of the device's events, its late measurements, and when its
 * connector was running.
 */
export type FindEvaluationContext = (
  sql: Sql,
  of: {
    deviceId: number;
    pId: string;
    newest: LastSeen;
    /** Earlier times make no difference; null: none does. */
    listenedSinceTs: number | null;
  },
) => Promise<Omit<EvaluationContext & AskedAt, 'nowTs'>>;

/** Why an event has not fired yet: what each live event's causes have collected and still lack. */
export function evaluationRoute({
  db,
  findNewest,
  findEvaluationContext,
}: {
  db: Sql;
  findNewest: FindNewestOf;
  findEvaluationContext?: FindEvaluationContext;
}): Route {
  return defineRoute({
    name: 'explainEvaluation',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/evaluation',
    summary: 'Explain the state of the purpose engine',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: Evaluation,
    errors: [404],
    answerBytes: 8_388_608,
    handler: async ({ account, params, request }) => {
      const timestamp = request.receivedTs;
      const row = await findEvaluation(db, account.accountId, params.deviceAuthUuid);
      if (!row) throw noSuchDevice();
      const { device_id: deviceId, engine, profile_id: pId, purposes, runtime } = row;
      if (!pId || !purposes || engine !== 'service') {
        return { engine: engine ?? ('none' as const), evaluation: null, timestamp };
      }
      // With a large profile, reading, compiling and explaining take a few milliseconds each.
      await yieldToEventLoop();
      const profile = compileProfile(pId, purposes);
      await yieldToEventLoop();
      const wanted = [...profile.senses.keys()].map((sId) => ({ deviceId, sId }));
      const seen = (await findNewest(db, wanted)).get(deviceId) ?? {};
      await yieldToEventLoop();
      const stood = runtime
        ? await replay(profile, runtime, row.evidence_log ?? [], yieldToEventLoop)
        : startRuntime(profile, timestamp);
      await yieldToEventLoop();
      const context = {
        ...(await findEvaluationContext?.(db, {
          deviceId,
          pId,
          newest: seen,
          listenedSinceTs: listenedSince(stood),
        })),
        nowTs: timestamp,
      };
      const explanation = explain(profile, stood, seen, context);
      await yieldToEventLoop();
      const evaluation = describeEvaluation(profile, explanation, context);
      await yieldToEventLoop();
      return { engine, evaluation, timestamp };
    },
  });
}

type EvaluationRow = {
  device_id: number;
  runtime: StoredRuntime | null;
  evidence_log: StoredLog[] | null;
  profile_id: string | null;
  engine: 'service' | 'device' | null;
  purposes: Purpose[] | null;
};

/** The state of a device's current profile; null if the account has no such device. */
async function findEvaluation(
  db: Sql,
  accountId: number,
  uuid: string,
): Promise<EvaluationRow | null> {
  const { rows } = await db.query<EvaluationRow>(
    `
      select s.device_id, s.runtime,
             (select json_agg(l order by l.version)
                from evidence_log l where l.device_id = s.device_id) as evidence_log,
             c.profile_id, c.engine, pc.purposes
        from device d
        join device_state s on s.device_id = d.id
        left join device_profile c on c.device_id = d.id and c.state = 'current'
        left join profile p on p.id = c.profile_id
        left join profile_content pc on pc.id = p.content_id
       where d.uuid = $2 and d.account_id = $1`,
    [accountId, uuid],
  );
  return rows[0] ?? null;
}
