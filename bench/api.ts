import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { meterConfiguration, meterPurpose } from './meter.ts';

export type RegisteredDevice = { uuid: string; token: string };
export type RegisteredAccount = { token: string; email: string };

const registrationsAtOnce = 16;

/** Sends a request to the service. Throws with the answer unless the status is 200. */
export async function call<T>(
  baseUrl: string,
  method: string,
  path: string,
  { token, body }: { token?: string; body?: unknown } = {},
): Promise<T> {
  const send = () =>
    fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        'Content-Type': 'application/json',
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const response = await patiently(send);
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** Requests of an account are limited per second: a 429 is retried after its Retry-After. */
async function patiently(send: () => Promise<Response>): Promise<Response> {
  for (let tries = 1; ; tries += 1) {
    const response = await send();
    const waitSeconds = Number(response.headers.get('retry-after') ?? NaN);
    if (response.status !== 429 || tries === 10 || !(waitSeconds <= 10)) return response;
    await response.arrayBuffer();
    await delay(waitSeconds * 1_000);
  }
}

export async function registerAccount(baseUrl: string): Promise<RegisteredAccount> {
  const email = `bench-${randomUUID()}@example.com`;
  const body = { email, password: 'a password of the bench' };
  const account = await call<{ accountAuthToken: string }>(baseUrl, 'POST', '/v2/accounts', {
    body,
  });
  return { token: account.accountAuthToken, email };
}

export async function registerDevices(
  baseUrl: string,
  token: string,
  count: number,
): Promise<RegisteredDevice[]> {
  const devices: RegisteredDevice[] = [];
  let next = 0;
  const work = async () => {
    while (next < count) {
      const index = next++;
      const answer = await call<{ deviceAuthUuid: string; deviceAuthToken: string }>(
        baseUrl,
        'POST',
        '/v2/devices',
        { token, body: meterConfiguration },
      );
      devices[index] = { uuid: answer.deviceAuthUuid, token: answer.deviceAuthToken };
    }
  };
  await Promise.all(Array.from({ length: registrationsAtOnce }, work));
  return devices;
}

/** The devices only send: the profile becomes current with the first message of each. */
export async function installProfile(
  baseUrl: string,
  token: string,
  devices: RegisteredDevice[],
): Promise<void> {
  await call(baseUrl, 'POST', '/v2/devices/profile', {
    token,
    body: {
      deviceAuthUuids: devices.map(({ uuid }) => uuid),
      purposeUuids: [],
      purposes: [meterPurpose],
    },
  });
}
