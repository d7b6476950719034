import { afterAll, beforeAll, expect, it } from 'vitest';
import { runProgram } from '../journeys/process.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';
import { hasMosquitto } from '../support/mosquitto.ts';
import { findProgram } from '../support/program.ts';
import { startMailServer, type MailServer } from '../support/smtp.ts';
import { blocksOf, getSection } from './readme.ts';

const page = 'docs/contacts.md';
const canRun = hasMosquitto && findProgram('curl') !== null;

let mail: MailServer;
let service: TestService;
beforeAll(async () => {
  mail = await startMailServer();
  service = await testService(
    { SMTP_URL: mail.url },
    {
      change: (config) => ({
        ...config,
        notifications: { ...config.notifications, webhooks: { allowPrivateAddresses: true } },
      }),
    },
  );
});
afterAll(async () => {
  await service?.close();
  await mail?.close();
});

it.skipIf(!canRun)('the commands of the page lead to a first e-mail', async () => {
  const section = getSection('Your first e-mail', page);
  const [start, account = '', trial = '', freezer = ''] = blocksOf(section, 'sh');
  expect(start).toBe('SMTP_URL=smtp://127.0.0.1:25 npm start');
  const ME = 'owner@example.org';
  const run = async (...blocks: string[]) => {
    const env = { URL: service.url, ME };
    const shell = runProgram('sh', ['-eu'], { env, input: blocks.join('\n') });
    const status = await shell.ended();
    expect([shell.stderr(), status]).toEqual(['', 0]);
    return shell.stdout();
  };
  // Later blocks use what earlier ones set; between them somebody reads a mail.
  const token = /"accountAuthToken"|TOKEN=(\S+)/;
  const first = await run(account, 'echo; echo "TOKEN=$TOKEN"');
  expect(first).toContain(`"address":"${ME}"`);
  const asked = await mail.mailTo(ME);
  const link = /http:\S+\/confirm\?token=[\w-]+/.exec(asked.text)?.[0] ?? '';
  expect((await fetch(link, { method: 'POST' })).status).toBe(200);

  const prelude = account
    .split('\n')
    .filter((line) => /^(URL|JSON|field|ME)\b/.test(line))
    .join('\n');
  const known = `${prelude}\nAUTH="Authorization: Bearer ${token.exec(first)?.[1]}"`;
  expect(await run(known, trial)).toContain('"state":"queued"');
  await mail.mailTo(ME, ({ headers }) => headers['subject'] === 'Test message');
  expect(await run(known, freezer)).not.toContain('"path"');
  const told = await mail.mailTo(ME, ({ headers }) => headers['subject'] === 'Freezer: too warm');
  const [title, body = ''] = (blocksOf(section, 'text')[0] ?? '').split('\n\n');
  expect(told.headers['subject']).toBe(title);
  const withoutTime = (text: string) => text.replace(/\(\d\d:\d\d \w+\)/, '(…)');
  expect(withoutTime(told.text)).toContain(withoutTime(body));
});

it('the receiver on the page recognises genuine messages', async () => {
  const [code = ''] = blocksOf(getSection('Webhooks', page), 'js');
  const { isGenuine } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
    isGenuine: (secret: string, headers: object, body: string) => boolean;
  };
  const receiver = await startHookReceiver();
  try {
    const call = async (method: string, path: string, token: string | null, body?: unknown) => {
      const headers = {
        'Content-Type': 'application/json',
        ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
      };
      const answer = await fetch(service.url + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
      });
      expect(answer.status).toBe(200);
      return (await answer.json()) as Record<string, unknown>;
    };
    const login = { email: 'hooks@example.org', password: 'a long pass phrase' };
    const token = String((await call('POST', '/v2/accounts', null, login))['accountAuthToken']);
    const update = { webhooks: [{ url: `${receiver.url}/hook` }] };
    const { webhooks } = await call('PUT', '/v2/accounts/contacts', token, update);
    const [{ secret } = { secret: '' }] = webhooks as { secret: string }[];
    const again = await call('PUT', '/v2/accounts/contacts', token, update);
    expect(again['webhooks']).toEqual(webhooks);
    await call('POST', '/v2/accounts/contacts/test', token);
    const { headers, body } = await receiver.request();
    expect(JSON.parse(body)).toMatchObject({ type: 'test', data: { title: 'Test message' } });
    expect(isGenuine(secret, headers, body)).toBe(true);
    expect(isGenuine(secret, headers, `${body} `)).toBe(false);
    expect(isGenuine(`whsec_${'A'.repeat(32)}`, headers, body)).toBe(false);
  } finally {
    await receiver.close();
  }
});
