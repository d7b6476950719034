import { pino } from 'pino';
import { DomainError } from '../../src/errors.ts';
import { type HttpOptions, startHttp } from '../../src/http/server.ts';

export type TestHttp = Awaited<ReturnType<typeof startTestHttp>>;

/** Serves routes over real HTTP. The only valid token is `good`. */
export async function startTestHttp(options: Partial<HttpOptions> & Pick<HttpOptions, 'routes'>) {
  const lines: string[] = [];
  const server = await startHttp({
    authenticate: async (token) => {
      if (token === 'good') return { accountId: 1, accountUuid: 'u', sessionId: 's' };
      throw new DomainError('unauthenticated', 'No.');
    },
    log: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }),
    clock: Date.now,
    host: '127.0.0.1',
    port: 0,
    ...options,
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    port: server.port,
    lines,
    close: () => server.close(),
    async fetch(path: string, init: RequestInit = {}) {
      const response = await fetch(url + path, init);
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
      const body = (isJson && text !== '' ? JSON.parse(text) : {}) as Record<string, unknown>;
      return { status: response.status, headers: response.headers, text, body };
    },
  };
}
