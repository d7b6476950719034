// Tells the parent what a thousand requests leave in the old space. It runs in a process of its own, set up like the
// service, because a test runner leaves something there now and then too.
import { once } from 'node:events';
import { connect } from 'node:net';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { pino } from 'pino';
import { z } from 'zod';
import { defineRoute } from '../../src/http/route.ts';
import { tuneCollector } from '../../src/process/v8.ts';
import { startTestHttp } from './start.ts';

tuneCollector();
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options: { type: 'minor' | 'major' }) => void;

function oldBytes(): number {
  const old = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space');
  return old?.space_used_size ?? 0;
}

const route = defineRoute({
  method: 'get',
  path: '/',
  auth: 'account',
  summary: 'A route',
  tag: 'Test',
  errors: [],
  response: z.unknown(),
  handler: async ({ request }) => ({ url: request.url }),
});
const http = await startTestHttp({ routes: [route], log: pino({ level: 'silent' }) });
const socket = connect(http.port, '127.0.0.1');

async function ask(times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n');
    await once(socket, 'data');
  }
}

await ask(1_000);
collect({ type: 'major' });
const before = oldBytes();
for (let i = 0; i < 20; i += 1) {
  await ask(50);
  // What survives two minor collections is in the old space.
  collect({ type: 'minor' });
  collect({ type: 'minor' });
}
process.send?.({ bytesEach: (oldBytes() - before) / 1_000 });
socket.destroy();
await http.close();
process.disconnect();
