import { anySense } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';
import { work } from '../workers.ts';

/** Each from an address of its own: registrations are counted by address. */
const addressOf = (worker: number, turn: number) => `127.${1 + worker}.${turn % 250}.7`;

export const accountChurn: NoisyKind = {
  name: 'account-churn',
  says: 'registers accounts from many addresses, fills them, deletes them',
  setUp: async (enemy) => (signal) =>
    work(8, signal, async (worker, turn) => {
      const address = addressOf(worker, turn);
      const email = `churn-${worker}-${turn}-${process.pid}@example.com`;
      const credentials = { email, password: 'a password of the enemy' };
      const made = await enemy.ask('POST', '/v2/accounts', { body: credentials, address });
      if (made.status !== 200) return;
      const { accountAuthToken: token } = JSON.parse(made.text) as { accountAuthToken: string };
      for (let n = 0; n < 10; n++) {
        await enemy.ask('POST', '/v2/devices', { token, address, body: anySense });
        await enemy.ask('POST', '/v2/purposes', { token, address, body: purposeOf(64) });
      }
      await enemy.ask('DELETE', '/v2/accounts', { token, address });
    }),
};
