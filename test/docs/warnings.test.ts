import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFileSync } from 'node:fs';
import { type Warning, warningCodes } from '../../src/contract/warnings.ts';
import { call } from '../accounts/app.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { startMailServer, type MailServer } from '../support/smtp.ts';

const page = readFileSync('docs/warnings.md', 'utf8');

/** A section's requests, and the warnings that it shows for the last answer. */
type Section = {
  code: string;
  requests: { method: string; path: string; body: string }[];
  warnings: string;
};

const sections = page
  .split(/^### /m)
  .slice(1)
  .map((text): Section => {
    const code = /^`([\w-]+)`/.exec(text)?.[1] ?? '';
    const requests = [...text.matchAll(/^```json (\w+) (\S+)\n(.*?)^```$/gms)];
    return {
      code,
      requests: requests.map(([, method = '', path = '', body = '']) => ({ method, path, body })),
      warnings: /^```json warnings\n(.*?)^```$/ms.exec(text)?.[1] ?? '',
    };
  });

let mail: MailServer;
let plain: TestService;
let mailed: TestService;
beforeAll(async () => {
  mail = await startMailServer();
  plain = await testService();
  mailed = await testService(
    { SMTP_URL: mail.url },
    // So that SMS to the fictitious numbers are refused.
    {
      change: (config) => ({
        ...config,
        notifications: {
          ...config.notifications,
          sms: { driver: 'log' as const, forAll: true, allowedPrefixes: ['+', '!+1555'] },
        },
      }),
    },
  );
});
afterAll(async () => {
  await plain?.close();
  await mailed?.close();
  await mail?.close();
});

/** Warnings whose example needs the service with mail, and with SMS allowed to all but some numbers. */
const ofMailed = new Set(['not-confirmed', 'sms-log-only', 'number-refused']);

/** The device accepts a profile of its own and reports that it evaluates it. */
async function evaluateItself(url: string, registered: object, token: string): Promise<void> {
  const device = await connectDevice(registered as Registration);
  await device.subscribe('down/profile');
  const purposes = [{ puId: 1, initStId: 1, states: [{ stId: 1 }] }];
  const body = { deviceAuthUuids: [device.uuid], purposes };
  await call(url, 'POST', '/v2/devices/profile', { body, token });
  const { pId } = await device.receive('down/profile');
  await device.publish('up/profile', { pId, state: 'current', engine: 'device' });
  await device.end();
}

test('every code has its section, and there are no others', () => {
  expect(sections.map(({ code }) => code).toSorted()).toEqual(warningCodes.toSorted());
});

test.each(sections)('$code', async ({ code, requests, warnings }) => {
  const { url } = ofMailed.has(code) ? mailed : plain;
  const send = (method: string, path: string, body: unknown, token?: string) =>
    call(url, method, path, { body, ...(token ? { token } : {}) });
  const credentials = { email: `${code}@example.com`, password: 'correct horse' };
  const account = await send('POST', '/v2/accounts', credentials);
  const token = String(account.body['accountAuthToken']);
  const senses = [{ sId: '0x10', min: -40, max: 85 }];
  const configuration = { device: { name: 'Probe' }, module: [{ moduleId: 'climate', senses }] };
  const device = await send('POST', '/v2/devices', configuration, token);
  if (code === 'needs-service-engine') await evaluateItself(url, device.body, token);
  let said: unknown;
  let purposeUuid = '';
  for (const { method, path, body } of requests) {
    const text = body.replaceAll('$UUID', String(device.body['deviceAuthUuid']));
    const at = path.replace('$PURPOSE', purposeUuid);
    const answer = await send(method, at, text.trim() === '' ? undefined : JSON.parse(text), token);
    expect(answer).toMatchObject({ status: 200 });
    purposeUuid = String(answer.body['purposeUuid']);
    said = answer.body['warnings'];
  }
  expect((said as Warning[]).map((warning) => warning.code)).toContain(code);
  expect(said).toEqual(JSON.parse(warnings));
});
