import type { Logger } from 'pino';
import { expect, vi } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { testService, withConsole, type TestService } from '../journeys/service.ts';

/** The whole service with the console turned on, and built. */
export async function consoleService(
  change: (config: Config) => Config = (config) => config,
  log?: Logger,
) {
  const service = await testService(
    {},
    { change: (config) => change(withConsole(config)), ...(log ? { log } : {}) },
  );
  await consoleBuilt(service.url);
  return service;
}

export type { TestService };

export const person = { email: 'ada@example.com', password: 'correct horse' };

/** Creates the account of `person`; returns the token of its session. */
export async function makeAccount(url: string, credentials = person): Promise<string> {
  const response = await fetch(`${url}/v2/accounts`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(credentials),
  });
  return ((await response.json()) as { accountAuthToken: string }).accountAuthToken;
}

/** Waits until the console is built: before that its page gets 503, and reloads itself. */
export async function consoleBuilt(url: string): Promise<void> {
  const options = { timeout: 60_000, interval: 100 };
  await vi.waitFor(async () => expect((await fetch(`${url}/console/`)).status).toBe(200), options);
}
