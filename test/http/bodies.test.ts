import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import Koa from 'koa';
import { afterEach, expect, test } from 'vitest';
import { createBodyReader } from '../../src/http/body.ts';

let server: Server;
afterEach(() => server.closeAllConnections());

// No retry: garbage of the first attempt would be collected during the second.
test(
  'a body in chunks of one byte takes little more memory than its bytes',
  { retry: 0 },
  async () => {
    const [bodies, length] = [20, 40_000];
    const readBody = createBodyReader(length);
    let arrived = 0;
    const app = new Koa();
    app.silent = true;
    app.use(async (ctx) => {
      const read = readBody(ctx);
      ctx.req.on('data', (chunk: Buffer) => (arrived += chunk.length));
      ctx.body = { read: await read };
    });
    const handle = app.callback();
    server = createServer((request, response) => void handle(request, response));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;

    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const measure = () => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const text = '1'.padEnd(length);
    const chunks = text.replace(/./g, '1\r\n$&\r\n');
    const before = measure();
    const sockets = Array.from({ length: bodies }, () => {
      const socket = connect(port, '127.0.0.1');
      // If the test fails, the server closes these connections.
      socket.on('error', () => undefined);
      socket.write(
        'POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n' +
          'Transfer-Encoding: chunked\r\n\r\n',
      );
      socket.write(chunks);
      return socket;
    });
    await expect.poll(() => arrived).toBe(bodies * length);
    // A Buffer for each byte would take 200 bytes: 160 MB.
    expect(measure() - before).toBeLessThan(16_000_000);
    const answered = once(sockets[0] as (typeof sockets)[0], 'data');
    sockets[0]?.write('0\r\n\r\n');
    expect(String(await answered)).toContain('{"read":1}');
    for (const socket of sockets) socket.destroy();
  },
);
