import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

type Pair = { token: string; refreshToken: string };

const pairOf = (text: string) => (JSON.parse(text) as { data: Pair }).data;

export const sessions: NoisyKind = {
  name: 'sessions',
  says: 'logs in and refreshes in 20 loops',
  setUp: async (enemy) => {
    const { email, password } = enemy.account;
    return (signal) =>
      work(20, signal, async () => {
        const login = await enemy.ask('POST', '/v1/auth/login', { body: { email, password } });
        let pair = login.status === 200 ? pairOf(login.text) : null;
        while (pair && !signal.aborted) {
          const { token, refreshToken }: Pair = pair;
          const options = { token, body: { refreshToken } };
          const again = await enemy.ask('POST', '/v1/auth/refresh', options);
          pair = again.status === 200 ? pairOf(again.text) : null;
        }
      });
  },
};
