import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const loginStorm: NoisyKind = {
  name: 'login-storm',
  says: '300 connections that log in with one right password',
  setUp: async (enemy) => {
    const { email, password } = enemy.account;
    return (signal) =>
      work(300, signal, () =>
        enemy.ask('POST', '/v2/accounts/login', { body: { email, password } }),
      );
  },
};
