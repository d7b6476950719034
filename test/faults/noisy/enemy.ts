import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { createAsk } from './ask.ts';
import type { Answer, AskOptions } from './ask.ts';
import type { Target } from './target.ts';
import { createTally } from './tally.ts';
import type { Tally } from './tally.ts';

/** An attacker with an account, and the attacker's tools. */
export type Enemy = Target & {
  account: EnemyAccount;
  registerAccount(address?: string): Promise<EnemyAccount>;
  /** Sends a request as the account, unless another token is given. Never throws: status 0 means no answer. */
  ask(method: string, path: string, options?: AskOptions): Promise<Answer>;
  /** A connection whose bytes are counted, and which is closed at the end. */
  dial(port: number, address?: string): Socket;
  tally: Tally;
};

export type EnemyAccount = { email: string; password: string; token: string };

const password = 'a password of the enemy';

/** Registers an account for an attacker. */
export async function createEnemy(target: Target): Promise<Enemy> {
  const tally = createTally();
  const ask = createAsk(target, tally);
  const registerAccount = async (address = target.address) => {
    const email = `noisy-${randomUUID()}@example.com`;
    const body = { email, password };
    const answer = await ask('POST', '/v2/accounts', { body, address });
    if (answer.status !== 200) throw new Error(`Registration: ${answer.status} ${answer.text}`);
    const { accountAuthToken: token } = JSON.parse(answer.text) as { accountAuthToken: string };
    return { email, password, token };
  };
  const account = await registerAccount();
  return {
    ...target,
    account,
    registerAccount,
    ask: (method, path, options) => ask(method, path, { token: account.token, ...options }),
    dial(port, address = target.address) {
      const socket = connect({ host: '127.0.0.1', port, localAddress: address, noDelay: true });
      tally.watch(socket);
      return socket.on('error', () => tally.count('connections reset'));
    },
    tally,
  };
}
