import { expect, test } from 'vitest';
import { probeRoutes } from '../../src/http/health.ts';
import { startTestHttp } from './start.ts';

test('an answer "not ready" names what is missing, and is not logged', async () => {
  let missing = ['database', 'bridge:emqx'];
  const http = await startTestHttp({ routes: probeRoutes({ listUnready: async () => missing }) });
  try {
    const { status, body } = await http.fetch('/readyz');
    expect([status, body['detail']]).toEqual([503, 'Not ready: database, bridge:emqx.']);
    expect((await http.fetch('/livez')).status).toBe(200);
    missing = [];
    expect((await http.fetch('/readyz')).body).toEqual({ ready: true });
    expect(http.lines.filter((line) => !line.includes('"level":20'))).toEqual([]);
  } finally {
    await http.close();
  }
});
