import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const unicodeLogin: NoisyKind = {
  name: 'unicode-login',
  says: 'guesses a password under other writings of the address',
  setUp: async (enemy) => {
    const email = enemy.account.email.replace('noisy', 'no\u0130sy');
    return (signal) =>
      work(50, signal, (worker, turn) => {
        const written = turn % 2 === 0 ? email : enemy.account.email.toUpperCase();
        const body = { email: written, password: `guess ${worker} ${turn}` };
        return enemy.ask('POST', '/v2/accounts/login', { body });
      });
  },
};
