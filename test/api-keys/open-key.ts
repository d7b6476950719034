import type { App } from '../journeys/app.ts';

export type Made = { keyId: string; key: string; timestamp: number };

/** Creates a key of the app's account. */
export const makeKey = (app: App, given: object): Promise<Made> =>
  app.call<Made>('POST', '/v2/accounts/keys', { name: 'a program', ...given });
