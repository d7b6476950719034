import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

/** Refused logins fill the audit trail, which is listed at the same time, and resumed at cursors made up. */
export const auditLists: NoisyKind = {
  name: 'audit-lists',
  says: 'fills its audit trail with sessions and lists it in 20 loops, with cursors of its own making',
  setUp: async (enemy) => {
    const { email, password } = enemy.account;
    const forged = Buffer.from(JSON.stringify(['9'.repeat(1_000)])).toString('base64url');
    return (signal) =>
      work(20, signal, async (worker, turn) => {
        if (worker % 4 === 0) {
          const body = { email, password: turn % 2 === 0 ? password : 'wrong, and long enough' };
          await enemy.ask('POST', '/v2/accounts/login', { body });
        }
        await enemy.ask('GET', '/v2/accounts/audit?limit=1000');
        await enemy.ask('GET', `/v2/accounts/audit?cursor=${forged}`);
        await enemy.ask('GET', `/v2/devices?cursor=${forged}`);
        const headers = { 'If-None-Match': Array(500).fill('"x"').join(',') };
        await enemy.ask('GET', '/v2/openapi.json', { headers });
      });
  },
};
