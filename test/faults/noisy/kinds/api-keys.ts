import { randomBytes } from 'node:crypto';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const apiKeys: NoisyKind = {
  name: 'api-keys',
  says: 'asks with wrong API keys in 48 loops, and makes, uses and revokes keys in 16',
  setUp: async (enemy) => {
    const guess = () => `sens_${randomBytes(32).toString('base64url')}`;
    return (signal) =>
      work(64, signal, async (worker) => {
        if (worker % 4 !== 0) {
          await enemy.ask('GET', '/v2/devices', { token: guess() });
          return;
        }
        const body = { name: 'noisy', scopes: ['devices:read'] };
        const { status, text } = await enemy.ask('POST', '/v2/accounts/keys', { body });
        if (status !== 200) return;
        const { key, keyId } = JSON.parse(text) as { key: string; keyId: string };
        await enemy.ask('GET', '/v2/devices', { token: key });
        await enemy.ask('DELETE', `/v2/accounts/keys/${keyId}`);
      });
  },
};
