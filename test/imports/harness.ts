import { configuration, send } from '../journeys/app.ts';
import type { Registration } from '../journeys/app.ts';
import type { Database } from '../../src/db/database.ts';
import { openTestDatabase } from '../support/database.ts';
import { testService, type TestService } from '../journeys/service.ts';

/** Of a receipt, or of what was refused. */
export type Answer = {
  status: number;
  type?: string;
  detail?: string;
  stored: number;
  repeated: number;
  rejected: number;
  errors: { line: number; reason: string; path?: string; message?: string }[];
};

/** An account, and what it imports. */
export type Importer = {
  token: string;
  register(): Promise<Registration>;
  json(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
  /** Sends a body in one piece, or as it comes. */
  import(
    body: string | Uint8Array | ReadableStream,
    type?: string,
    more?: Headers,
  ): Promise<Answer>;
  /** An export of what the account has. */
  export(type: string, query: string): Promise<string>;
};
type Headers = Record<string, string>;

export const csv = 'text/csv';
export const ndjson = 'application/x-ndjson';
export const header = 'deviceAuthUuid,sId,ts,val,lat,long';

let accounts = 0;

/** A new account that is logged in. */
export async function openImporter(url: string): Promise<Importer> {
  const email = `import-${process.pid}-${(accounts += 1)}@example.org`;
  const credentials = { email, password: 'correct horse battery' };
  await send(`${url}/v2/accounts`, 'POST', credentials);
  const login = await send(`${url}/v2/accounts/login`, 'POST', credentials);
  const { accountAuthToken } = (await login.json()) as { accountAuthToken: string };
  return importerOf(url, accountAuthToken);
}

/** The same with a token or a key. */
export function importerOf(url: string, token: string): Importer {
  async function json(method: string, path: string, body?: unknown) {
    const response = await send(url + path, method, body, token);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  }
  return {
    token,
    json,
    register: async () => (await json('POST', '/v2/devices', configuration)) as Registration,
    async import(body, type = csv, more = {}) {
      const response = await fetch(`${url}/v2/measurements/import`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': type, ...more },
        body,
        duplex: 'half',
      });
      return { status: response.status, ...((await response.json()) as Omit<Answer, 'status'>) };
    },
    async export(type, query) {
      const headers = { authorization: `Bearer ${token}`, accept: type };
      const response = await fetch(`${url}/v2/measurements?${query}`, { headers });
      return response.text();
    },
  };
}

/** Lines of CSV with a header. */
export const csvOf = (...lines: string[]) => [header, ...lines, ''].join('\r\n');

/** Lines of one sense of a device, at intervals of a second. */
export function linesOf(uuid: string, count: number, fromTs: number, sId = '0x02'): string[] {
  return Array.from({ length: count }, (_, n) => `${uuid},${sId},${fromTs + n * 1_000},${n / 4},,`);
}

/** A service, and its database for this process to read. */
export type Installation = TestService & { db: Database };

export async function startInstallation(
  ...options: Parameters<typeof testService>
): Promise<Installation> {
  const service = await testService(...options);
  const db = openTestDatabase(service.databaseUrl);
  const close = async () => {
    await db.close();
    await service.close();
  };
  return { ...service, db, close };
}
