import { afterAll, beforeAll, expect, it } from 'vitest';
import { testService, type TestService } from '../journeys/service.ts';
import { hasMosquitto } from '../support/mosquitto.ts';
import { findProgram } from '../support/program.ts';
import { startShell, type Shell } from '../support/shell.ts';
import { startMailServer, type MailServer } from '../support/smtp.ts';
import { blocksOf, getSection } from './readme.ts';

const page = 'docs/alarms.md';
const canRun = hasMosquitto && findProgram('curl') !== null;
const ME = 'owner@example.org';

let mail: MailServer;
let service: TestService;
let shell: Shell;
beforeAll(async () => {
  mail = await startMailServer();
  service = await testService({ SMTP_URL: mail.url });
  shell = startShell({ URL: service.url, ME });
});
afterAll(async () => {
  await shell?.close();
  await service?.close();
  await mail?.close();
});

const mailOf = (subject: string) =>
  mail.mailTo(ME, ({ headers }) => headers['subject'] === subject);

it.skipIf(!canRun)('the commands of the page lead to an alarm, and to its end', async () => {
  const section = getSection('From nothing to a mail', page);
  const [account = '', trial = '', freezer = '', warm = ''] = blocksOf(section, 'sh');
  expect(await shell.run(account)).toContain(`"address":"${ME}"`);
  const asked = await mail.mailTo(ME);
  const link = /http:\S+\/confirm\?token=[\w-]+/.exec(asked.text)?.[0] ?? '';
  expect((await fetch(link, { method: 'POST' })).status).toBe(200);

  expect(await shell.run(trial)).toContain('"state":"queued"');
  await mailOf('Test message');
  expect(await shell.run(freezer)).toContain('"warnings":[]');
  await shell.run(warm);
  const [subject = '', body = ''] = (blocksOf(section, 'text')[0] ?? '').split('\n\n');
  const withoutTime = (text: string) => text.replace(/\(\d\d:\d\d \w+\)/, '(…)');
  expect(withoutTime((await mailOf(subject)).text)).toContain(withoutTime(body));

  const [open = '', acknowledge = '', cold = ''] = blocksOf(getSection('The list', page), 'sh');
  const { alarms } = JSON.parse(await shell.run(open)) as { alarms: object[] };
  expect(alarms).toMatchObject([{ deviceName: 'Freezer', state: 'open' }]);
  await shell.run(acknowledge);
  expect(await shell.run(open)).toContain('"alarms":[]');
  const closed = JSON.parse(await shell.run(cold)) as { alarms: object[] };
  expect(closed.alarms).toMatchObject([{ state: 'closed', closedBy: 'cleared' }]);
  await mailOf('Freezer: too warm: over');
});
