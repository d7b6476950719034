import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Enemy } from './enemy.ts';

/** Takes SMS as an operator's webhook would, and counts them. */
export async function startReceiver({ receiverPort, tally }: Enemy): Promise<void> {
  const server = createServer((request, response) => {
    tally.count('SMS');
    request.resume();
    response.end('{}');
  });
  server.listen(receiverPort, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
}

/** Settings that send the SMS of all accounts to the receiver. */
export function smsSettings(dir: string, receiverPort: number): object {
  const secretFile = join(dir, 'webhook-secret');
  writeFileSync(secretFile, 'shared with the webhook');
  const url = `http://127.0.0.1:${receiverPort}/`;
  return { notifications: { sms: { driver: 'webhook', url, secretFile, forAll: true } } };
}
