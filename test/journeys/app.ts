import { conformTo } from './conform.ts';

/** A mobile app: an account and its token. */
export type App = {
  /** Sends JSON with the account's token. Returns the body of a 200 that is as documented; throws for anything else. */
  call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>;
  /** A page of a list, and the path of the next one. */
  page(path: string): Promise<{ body: unknown; next: string | undefined }>;
  email: string;
};

export type Registration = {
  connectorId: number;
  connectorName: string;
  protocol: string;
  host: string;
  port: number;
  deviceAuthUuid: string;
  deviceAuthToken: string;
  timestamp: number;
};

export const configuration = {
  device: { name: 'Greenhouse', swName: 'probe', swVersion: '1.0', hwVersion: 'A', serial: '7' },
  module: [
    {
      moduleId: 'climate',
      moduleName: 'Climate',
      senses: [{ sId: '0x01', min: -40, max: 85, minInterval: 1_000 }, { sId: '0x02' }],
    },
  ],
};

/** A purpose with one state, whose event is recorded when 0x01 exceeds `isGt` once. */
export const thresholdPurpose = (puId: number, isGt: number) => ({
  puId,
  name: `above ${isGt}`,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [
        {
          evId: 5,
          name: 'too warm',
          eventLog: true,
          actions: { cloud: { sendEvent: true } },
          causes: [{ sId: '0x01', orderId: 0, thresholds: { isGt } }],
        },
      ],
    },
  ],
});

export async function send(url: string, method: string, body?: unknown, token?: string) {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (token !== undefined) headers.Authorization = `Bearer ${token}`;
  return fetch(url, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
}

let accounts = 0;

/** Registers an account and logs in. */
export async function openApp(url: string): Promise<App> {
  const email = `app-${process.pid}-${++accounts}@example.org`;
  const credentials = { email, password: 'correct horse battery' };
  const conform = await conformTo(url);
  const ask = async (method: string, path: string, body?: unknown, token?: string) => {
    const response = await send(url + path, method, body, token);
    const text = await conform(method, path, response);
    if (response.status !== 200) throw new Error(`${response.status} ${response.url}: ${text}`);
    const [, next] = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
    return { body: JSON.parse(text) as unknown, next };
  };
  const call = async <T>(...asked: Parameters<typeof ask>) => (await ask(...asked)).body as T;
  await call('POST', '/v2/accounts', credentials);
  const { accountAuthToken } = await call<{ accountAuthToken: string }>(
    'POST',
    '/v2/accounts/login',
    credentials,
  );
  return {
    email,
    call: (method, path, body) => call(method, path, body, accountAuthToken),
    page: (path) => ask('GET', path, undefined, accountAuthToken),
  };
}
