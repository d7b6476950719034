import { presenceOf } from '../contract/presence.ts';
import type { Sql } from '../db/sql.ts';
import { refuseLabelList } from '../exports/list-devices.ts';
import { stream } from '../http/answer.ts';
import { linkNext } from '../http/page.ts';
import { labelsOf } from '../http/rights.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { nextTurn } from '../lib/in-turns.ts';
import type { Exports } from '../quotas/exports.ts';
import { countDevices } from './count-devices.ts';
import { countMatching, findDevices, type FoundDevice } from './find-devices.ts';
import { FleetQuery } from './fleet-schema.ts';
import { listDevices } from './list-devices.ts';
import { type ConnectorAddress, intermittentAmong } from './pick-connector.ts';
import { DeviceList } from './schema.ts';
import { devicesInTurn, toListed, writeDeviceList } from './write-device-list.ts';

export type ListDevicesDeps = {
  db: Sql;
  listConnectors: () => readonly ConnectorAddress[];
  /** What device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The quota `exports`: lists that are read and sent at once. */
  exports: Pick<Exports, 'run'>;
};

/** Devices of a page where the request names no limit. */
const defaultLimit = 100;

/** All devices, as in specification section 4.3; or those that are looked for, in pages. */
export function listRoute({ db, keys, exports, listConnectors }: ListDevicesDeps): Route {
  return defineRoute({
    name: 'listDevices',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices',
    summary: 'Get user devices',
    description:
      'Without any parameter all of them, in one answer. With one of those below those that are looked ' +
      `for, in pages: of ${defaultLimit} unless \`limit\` says else.`,
    tag: 'Devices',
    auth: 'account',
    query: FleetQuery,
    response: DeviceList,
    secrets: 'sessions',
    errors: [],
    responseHeaders: { Link: 'The next page, where there is one.' },
    room: 4_194_304,
    handler: async ({ account, query, request }) => {
      const { accountId } = account;
      const labels = labelsOf(account);
      // Who reads a list with a key is no device.
      const tokenKeys = account.key ? null : keys;
      if (Object.values(query).every((value) => value === undefined)) {
        const pages = await exports.run(
          accountId,
          request.signal,
          listDevices(db, accountId, labels),
        );
        return stream('application/json', writeDeviceList(tokenKeys, pages, request.now()));
      }
      await refuseLabelList(db, accountId, { label: query.label, labels });
      const connectors = listConnectors();
      const intermittent = intermittentAmong(connectors);
      const filter = { ...query, accountId, labels, nowTs: request.now(), intermittent };
      const limit = query.limit ?? defaultLimit;
      const [found, counts, matching] = await Promise.all([
        findDevices(db, filter, limit),
        query.counts ? countDevices(db, filter) : undefined,
        query.counts ? countMatching(db, filter) : 0,
      ]);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      if (last && found.length > limit) linkNext(request, [last.sortKey, last.id]);
      const devices: DeviceList['devices'] = [];
      const byId = connectorsById(connectors);
      for (const [n, row] of page.entries()) {
        if (n % devicesInTurn === 0) await nextTurn();
        devices.push(toFound(tokenKeys, row, byId));
      }
      return { devices, counts: counts && { ...counts, matching }, timestamp: request.now() };
    },
  });
}

export type ConnectorsById = ReadonlyMap<number, Pick<ConnectorAddress, 'kind' | 'protocol'>>;

export const connectorsById = (connectors: readonly ConnectorAddress[]): ConnectorsById =>
  new Map(connectors.map((connector) => [connector.id, connector]));

/** A device as it stands in a page of the list. */
export function toFound(
  keys: readonly Buffer[] | null,
  row: FoundDevice,
  connectors: ConnectorsById,
): DeviceList['devices'][number] {
  const protocol = connectors.get(row.connectorId)?.protocol;
  // Of a connector that is not configured any more nothing better is known.
  const transport = connectors.get(row.heardAt)?.kind ?? 'mqtt';
  const { serial, openAlarms, alarmSinceTs, refusedTs, mutedUntilTs, mutedReason } = row;
  return {
    ...toListed(keys, row),
    presence: presenceOf(row.connected ?? false, transport !== 'mqtt'),
    transport,
    serial,
    openAlarms,
    ...(protocol === undefined ? {} : { protocol }),
    ...(alarmSinceTs === null ? {} : { alarmSinceTs }),
    ...(refusedTs === null ? {} : { refusedTs }),
    ...(mutedUntilTs === null ? {} : { mutedUntilTs }),
    ...(mutedReason === null ? {} : { mutedReason }),
  };
}
