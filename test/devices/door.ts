import { openDatabase } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/sql.ts';
import { createDeviceAuthenticator } from '../../src/devices/authenticate.ts';
import { type App, keys, secretIds } from './app.ts';

export type Door = ReturnType<typeof openDoor>;
export type Device = Awaited<ReturnType<App['device']>>;

const unreachable = openDatabase({
  connectionString: 'postgres://nobody@127.0.0.1:1/nothing',
  schema: 'nowhere',
  maxConnections: 1,
  connectTimeoutMs: 1_000,
  statementTimeoutMs: 1_000,
  onIdleError: () => {},
});

export const credentials = ({ uuid, password }: Device) => ({ username: uuid, password });

/** Device authentication on the app's database; it counts queries, and can make the database unreachable. */
export function openDoor(app: App, token: string, maxRemembered?: number) {
  /** The accounts that this process knows to be disabled. */
  const disabled = new Set<number>();
  const state = { queries: 0, away: false, timeMs: 0, disabled };
  const db = {
    query: (query: string, values?: unknown[]) => {
      state.queries += 1;
      return (state.away ? unreachable : app.db).query(query, values);
    },
  } as Sql;
  const clock = () => state.timeMs;
  const isDisabled = (accountId: number) => disabled.has(accountId);
  const authenticator = createDeviceAuthenticator({
    db,
    keys,
    secretIds,
    bus: app.bus,
    isDisabled,
    clock,
    ...(maxRemembered === undefined ? {} : { maxRemembered }),
  });
  return Object.assign(state, {
    authenticator,
    /** The identity of a device that must be let in. */
    async letIn(shown: { username: string; password: string }) {
      const identity = await authenticator.authenticateDevice(shown);
      if (!identity) throw new Error('was not let in');
      return identity;
    },
    /** The credentials with the new token. */
    async rotate({ uuid }: Device, revoke: boolean) {
      const path = `/v2/devices/${uuid}/token`;
      const answer = await app.call('POST', path, { token, body: { revoke } });
      return { username: uuid, password: String(answer.body['deviceAuthToken']) };
    },
  });
}
