import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const passwords = ['a password of the enemy', 'another password of the enemy'];

export const passwordChanges: NoisyKind = {
  name: 'password-changes',
  says: 'changes its password, and tries to with a wrong one, in 40 loops',
  setUp: async (enemy) => (signal) =>
    work(40, signal, (worker) => {
      const oldPassword = worker === 0 ? passwords[0] : `wrong ${worker}`;
      const body = { oldPassword, newPassword: passwords[0] };
      return enemy.ask('PUT', '/v2/accounts/password', { body });
    }),
};
