import type { Downlink } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { coalesce } from '../lib/coalesce.ts';
import { deriveToken } from './token.ts';

export type TokenHandoverDeps = {
  db: Sql;
  /** What device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The secrets of these keys, in the same order. */
  secretIds: readonly string[];
  /** Ms since the epoch. */
  clock: () => number;
};

type Due = { uuid: string; version: number };

/**
 * While the secret is being changed: the new token of a device that still uses one of the secret before, as it is sent on
 * `down/token`; null where there is none to be sent. Costs no query otherwise. Nothing is stored: it is sent each time
 * the device subscribes, until it has logged in with it. A process that has not been told of the newest secret, or
 * knows it as SECRET_PREVIOUS only, hands over nothing.
 */
export function createTokenHandover({ db, keys, secretIds, clock }: TokenHandoverDeps) {
  const [newest] = secretIds;
  const due = coalesce({ load: (ids: number[]) => listDueTokens(db, ids, newest ?? '') });

  return async (deviceId: number): Promise<Downlink | null> => {
    if (secretIds.length < 2) return null;
    const found = await due.find(deviceId);
    if (!found) return null;
    const deviceAuthToken = deriveToken(keys, found.uuid, found.version);
    return { topic: 'token', payload: { deviceAuthToken, ts: clock() } };
  };
}

/**
 * Of these devices those that last showed a token of another secret than `newest`; none where that is not the newest one.
 * One whose owner has made it a new token is left to its owner.
 */
async function listDueTokens(db: Sql, ids: number[], newest: string): Promise<Map<number, Due>> {
  const { rows } = await db.query<Due & { id: number }>({
    name: 'devices-due-tokens',
    text: `
      select d.id, d.uuid, d.token_version as version
        from device d
       where d.id = any($1::bigint[]) and d.token_secret <> $2 and not d.previous_token_accepted
         and $2 = (select left(value, 8) from secret_check order by place limit 1)`,
    values: [ids, newest],
  });
  return new Map(rows.map(({ id, uuid, version }) => [id, { uuid, version }]));
}
