import type { Sql } from '../db/sql.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams } from '../http/schema.ts';
import { noSuchDevice } from './no-such-device.ts';
import { findRefusedLogins, findRemovedLogins, type RefusedLoginRow } from './refused-logins.ts';
import {
  RefusedLoginList,
  RemovedLoginList,
  RemovedLoginsQuery,
  type RefusedLogin,
  type refusalReasons,
} from './refused-login-schema.ts';

const messages: Record<(typeof refusalReasons)[number], string> = {
  'wrong-token': 'The password is not a token of this device.',
  'retired-token': 'The password is an earlier token of this device, which opens nothing any more.',
  'device-removed': 'The device was removed.',
  'account-disabled': 'The account is disabled.',
  'too-many-connects': 'It connected again and again: it was refused for a moment.',
  'too-many-connections': "The account's quota connections was used up.",
  'foreign-will': 'Its will message has a topic outside of devices/<uuid>/up/.',
  'no-client-identifier':
    'It has no client identifier and wants its session kept (clean session 0).',
};

/** Why a device does not get in. */
export function refusedLoginsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listRefusedLogins',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/refused-logins',
    summary: 'List why a device was not let in',
    description:
      'Logins with its uuid that were refused, added up by reason and address, newest first. The newest ' +
      '16 of these are kept, for 30 days; also of a device that was removed. What is refused is here some ' +
      'seconds later, of one device once a minute. Anybody who knows a uuid can have logins refused.',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: RefusedLoginList,
    errors: [404],
    handler: async ({ account, params, request }) => {
      const rows = await findRefusedLogins(db, account.accountId, params.deviceAuthUuid);
      if (rows === null) throw noSuchDevice();
      return { refusedLogins: rows.map(toRefusedLogin), timestamp: request.now() };
    },
  });
}

/** Boxes that nobody switched off: which of those that were removed are still trying. */
export function removedLoginsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listRefusedLoginsOfRemoved',
    scope: 'devices:read',
    // A device that is gone has no labels.
    isOfWholeAccount: true,
    method: 'get',
    path: '/v2/devices/removed/refused-logins',
    summary: 'List removed devices that still try to log in',
    description:
      'Refused logins of devices that were removed within 30 days, of all of them together, newest first; ' +
      'for one of them, and for how they are counted, see `listRefusedLogins`.',
    tag: 'Devices',
    auth: 'account',
    query: RemovedLoginsQuery,
    response: RemovedLoginList,
    errors: [],
    handler: async ({ account, query, request }) => {
      const rows = await findRemovedLogins(db, account.accountId, query.limit);
      const refusedLogins = rows.map((row) => ({
        ...toRefusedLogin(row),
        deviceAuthUuid: row.uuid,
        ...(row.name === null ? {} : { name: row.name }),
        removedTs: row.removed_at,
      }));
      return { refusedLogins, timestamp: request.now() };
    },
  });
}

function toRefusedLogin(row: RefusedLoginRow): RefusedLogin {
  const { reason, address, count, first_at, last_at } = row;
  return {
    timestamp: last_at,
    firstTs: first_at,
    count,
    reason,
    message: messages[reason as keyof typeof messages] ?? reason,
    ...(address === '' ? {} : { address }),
  };
}
