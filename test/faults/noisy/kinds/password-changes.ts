import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const passwordChanges: NoisyKind = {
  name: 'password-changes',
  says: 'tries to change its password, with wrong ones, in 40 loops',
  setUp: async (enemy) => (signal) =>
    work(40, signal, (worker, turn) => {
      // A right one would end the session that asks.
      const body = { oldPassword: `wrong ${worker} ${turn}`, newPassword: enemy.account.password };
      return enemy.ask('PUT', '/v2/accounts/password', { body });
    }),
};
