import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NotificationSettings } from '../../src/notifications/settings.ts';
import { startApnsServer, tlsFile, type Received } from '../notifications/apns-server.ts';

/** Stand-ins for what lies outside: a push service, and a webhook that accepts SMS. */
export type Phones = {
  /** Settings that make the service send to them. */
  notifications: NotificationSettings;
  pushes: Received[];
  texts: unknown[];
  close(): Promise<void>;
};

export async function startPhones(): Promise<Phones> {
  const directory = await mkdtemp(join(tmpdir(), 'phones-'));
  const secretFile = join(directory, 'secret');
  await writeFile(secretFile, 'shared with the webhook');
  const apns = await startApnsServer();
  const texts: unknown[] = [];
  const webhook = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      texts.push(JSON.parse(body));
      response.end();
    });
  });
  await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve));
  const { port } = webhook.address() as AddressInfo;
  const push = {
    keyFile: tlsFile('provider-key.p8'),
    keyId: 'KEY1234567',
    teamId: 'TEAM123456',
    topic: 'com.example.app',
    address: 'localhost',
    port: apns.port,
    caFile: tlsFile('localhost-cert.pem'),
  };
  const url = `http://127.0.0.1:${port}/sms`;
  const sms = { driver: 'webhook', url, secretFile, forAll: true };
  return {
    notifications: NotificationSettings.parse({ pollIntervalMs: 50, push, sms }),
    pushes: apns.received,
    texts,
    close: async () => {
      await apns.close();
      webhook.closeAllConnections();
      await new Promise((resolve) => webhook.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
}
