import { expect, test } from 'vitest';
import { z } from 'zod';
import { createMetrics, startMetrics } from '../../src/metrics/observe.ts';
import { defineRoute } from '../../src/http/route.ts';
import { startTestHttp } from '../http/start.ts';

test('metrics count requests by documented path, on a port of their own', async () => {
  const metrics = createMetrics();
  const route = defineRoute({
    method: 'get',
    path: '/v2/things/{id}',
    summary: 'A thing',
    tag: 'Things',
    auth: 'none',
    errors: [],
    params: z.object({ id: z.string() }),
    response: z.object({}),
    handler: async () => ({}),
  });
  const http = await startTestHttp({ routes: [route], observe: metrics.observeHttp });
  const server = await startMetrics(metrics.registry, { host: '127.0.0.1', port: 0 });
  try {
    for (const id of ['one', 'two']) await http.fetch(`/v2/things/${id}`);
    await http.fetch('/made-up-by-a-stranger', { method: 'PROPFIND' });
    const response = await fetch(`http://127.0.0.1:${server.port}/metrics`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toContain('text/plain');
    const count = 'http_request_duration_seconds_count';
    expect(text).toContain(`${count}{method="GET",route="/v2/things/{id}",status="200"} 2`);
    expect(text).toContain(`${count}{method="",route="",status="404"} 1`);
    expect(text).toContain('process_cpu_seconds_total');
    expect(text).not.toMatch(/things\/(one|two)|stranger|PROPFIND/);
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(404);
    const url = `http://127.0.0.1:${server.port}/metrics`;
    const head = await fetch(url, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await fetch(url, { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await http.fetch('/metrics')).status).toBe(404);
  } finally {
    await server.close();
    await http.close();
  }
});
