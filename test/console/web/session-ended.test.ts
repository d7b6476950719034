import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ApiError, call, watchUnauthenticated } from '../../../src/console/web/api/request.ts';

let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer((_, response) => {
    const type = 'urn:sensorium:error:unauthenticated';
    response.writeHead(401, { 'Content-Type': 'application/problem+json' });
    response.end(JSON.stringify({ type, detail: 'A bearer token is required.' }));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const refused = (path: string) =>
  call('GET', origin + path).then(
    () => undefined,
    (error: unknown) => error,
  );

test('that a session has ended is an error of its own, and reported', async () => {
  const ended = vi.fn<() => void>();
  watchUnauthenticated(ended);
  const error = await refused('/v2/devices');
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 401, code: 'session-ended' });
  expect(ended).toHaveBeenCalledOnce();
});
