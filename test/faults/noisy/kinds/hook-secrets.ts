import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const hookSecrets: NoisyKind = {
  name: 'hook-secrets',
  says: "asks the broker's hooks with wrong secrets",
  variables: () => ({ BROKER_HOOK_SECRET: 'a secret that only the broker knows, long enough' }),
  setUp: async (enemy) => {
    const body = { username: 'x', password: 'y', clientid: 'z' };
    return (signal) =>
      work(64, signal, (worker, turn) =>
        enemy.ask('POST', '/connector/authenticate', { token: `guess ${worker} ${turn}`, body }),
      );
  },
};
