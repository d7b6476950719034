import { expect } from 'vitest';
import { readEvents, type Message, type Reading } from '../events/sse.ts';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { connectDevice, type TestDevice } from '../journeys/device.ts';

export type Measured = { deviceAuthUuid: string; sId: string; val: unknown; ts: number };

/** A stream with what it carried, by SSE name. */
export type Stream = Reading & {
  named(name: string): Record<string, unknown>[];
  /** Resolves once there are `count` messages with that name. */
  untilNamed(name: string, count: number): Promise<Record<string, unknown>[]>;
  /** As `[sId, val]`. */
  values(): [string, unknown][];
  untilValues(count: number): Promise<[string, unknown][]>;
};

/** `token`: null for an address with a ticket. */
export async function openStream(
  url: string,
  token: string | null,
  lastEventId?: string,
): Promise<Stream> {
  const reading = await readEvents(url, token, lastEventId);
  const named = (name: string) =>
    reading.messages.flatMap(({ event, data }: Message) => (event === name && data ? [data] : []));
  const values = () =>
    (named('measurement') as Measured[]).map(({ sId, val }): [string, unknown] => [sId, val]);
  const untilNamed = async (name: string, count: number) => {
    await expect
      .poll(() => named(name).length, { timeout: 60_000, interval: 5 })
      .toBeGreaterThanOrEqual(count);
    return named(name);
  };
  return {
    ...reading,
    named,
    untilNamed,
    values,
    async untilValues(count) {
      await untilNamed('measurement', count);
      return values();
    },
  };
}

/** Registers a device of the app's account, and connects it. */
export async function addDevice(
  app: App,
  labels: string[] = [],
  configured: object = configuration,
): Promise<TestDevice> {
  const registration = await app.call<Registration>('POST', '/v2/devices', configured);
  const path = `/v2/devices/${registration.deviceAuthUuid}/labels`;
  if (labels.length > 0) await app.call('PUT', path, { labels });
  return connectDevice(registration);
}

/** An account and its token. */
export async function openAccount(url: string): Promise<{ app: App; token: string }> {
  const app = await openApp(url);
  const { email } = app;
  const response = await fetch(`${url}/v2/accounts/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: 'correct horse battery' }),
  });
  const { accountAuthToken } = (await response.json()) as { accountAuthToken: string };
  return { app, token: accountAuthToken };
}
