import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SMTPServer } from 'smtp-server';
import { afterEach, describe, expect, test } from 'vitest';
import { createLog } from '../../src/log/log.ts';
import { emailDriver } from '../../src/notifications/channels/email.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const mail = { id: 1, recipient: 'someone@example.org', title: 'Test', body: 'Text' };

/** A server that answers a line with the entry of `answers` that it begins with, and 250 to all others. */
async function startScripted(answers: Record<string, string>): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write(answers['greeting'] ?? '220 here\r\n');
    let isData = false;
    let rest = '';
    socket.on('data', (chunk: Buffer) => {
      rest += chunk.toString();
      for (let end = rest.indexOf('\r\n'); end !== -1; end = rest.indexOf('\r\n')) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 2);
        if (isData && line !== '.') continue;
        isData = line === 'DATA' && answers['DATA'] === undefined;
        const known = Object.keys(answers).find((start) => line.startsWith(start));
        const said = known === undefined ? undefined : answers[known];
        if (line === 'QUIT') socket.end('221 bye\r\n');
        else if (isData) socket.write('354 go on\r\n');
        else socket.write(`${(said ?? '250 fine').replace('{line}', line)}\r\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const send = (smtpUrl: string) => {
  const driver = emailDriver({ smtpUrl, from: 'service@example.org', timeoutMs: 5_000 });
  return driver.send(mail).finally(() => driver.close());
};

const ehlo = { EHLO: '250-here\r\n250 AUTH PLAIN LOGIN' };

describe('what a mail server refuses', () => {
  test.each([
    ['the recipient', { RCPT: '550 5.1.1 unknown' }, 'never', 'provider-refused'],
    ['the text', { DATA: '554 5.6.0 spam' }, 'never', 'provider-refused'],
    ['the recipient for now', { RCPT: '450 4.2.0 greylisted' }, 'again', 'provider-busy'],
    ['commands in this order', { RCPT: '503 5.5.1 bad sequence' }, 'again', 'provider-busy'],
    // The operator can fix all of these; they say nothing about the recipient.
    [
      'whoever did not log in',
      { MAIL: '530 5.7.0 Authentication required' },
      'again',
      'provider-login',
    ],
    ['whoever did not log in, late', { RCPT: '530 5.7.0 log in' }, 'again', 'provider-login'],
    ['the sender', { MAIL: '550 5.7.1 sender rejected' }, 'again', 'provider-login'],
    ['everybody', { greeting: '554 5.3.2 no service\r\n' }, 'again', 'provider-login'],
    ['to speak SMTP', { greeting: 'HTTP/1.1 400 Bad Request\r\n' }, 'again', 'bad-answer'],
  ])('%s', async (_, answers, verdict, reason) => {
    const host = await startScripted(answers);
    await expect(send(`smtp://${host}`)).rejects.toMatchObject({ verdict, reason });
  });

  test('a refused connection counts as no answer', async () => {
    await expect(send('smtp://127.0.0.1:1')).rejects.toMatchObject({
      verdict: 'again',
      reason: 'no-answer',
    });
  });
});

describe('a server that repeats the login', () => {
  const password = 'p@ss w/ord:12345';
  const login = `user:${encodeURIComponent(password)}`;
  const base64 = (text: string) => Buffer.from(text).toString('base64').replaceAll('=', '');
  const forms = [
    password,
    base64(password),
    base64(`\0user\0${password}`),
    encodeURIComponent(password),
  ];

  test.each([
    ['in the refusal of a login', { ...ehlo, AUTH: '535 5.7.8 {line} is wrong' }],
    ['later', { ...ehlo, AUTH: '235 ok', RCPT: `550 5.1.1 you said ${forms.join(' ')}` }],
  ])('%s: the log does not contain the password', async (_, answers) => {
    const host = await startScripted(answers);
    const error = await send(`smtp://${login}@${host}`).catch((thrown: unknown) => thrown);
    let said = '';
    const destination = { write: (line: string) => void (said += line) };
    const log = createLog({ level: 'debug', isTerminal: false, role: 'api', destination });
    log
      .child({ component: 'notifications' })
      .warn({ event: 'notification.undelivered', err: error }, 'Text.');
    for (const form of forms) expect(said).not.toContain(form);
    expect(said).toMatch(/535 5\.7\.8|550 5\.1\.1 you said \[redacted\]/);
  });
});

describe.skipIf(!hasOpenssl)('a mail server with a self-signed certificate', () => {
  async function startSigned() {
    const dir = await mkdtemp(join(tmpdir(), 'smtp-'));
    const files = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
    await makeCertificate('mail.example', files);
    const [cert, key] = await Promise.all([readFile(files.certFile), readFile(files.keyFile)]);
    let arrived = 0;
    const server = new SMTPServer({
      authOptional: true,
      cert,
      key,
      onData(stream, { secure }, callback) {
        stream.resume();
        stream.on('end', () => {
          if (secure) arrived += 1;
          callback();
        });
      },
    });
    server.on('error', () => undefined);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    closing.push(async () => {
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(dir, { recursive: true });
    });
    const { port } = server.server.address() as AddressInfo;
    return { port, certFile: files.certFile, arrived: () => arrived };
  }

  test('is accepted on this machine, over TLS, as Debian installs one', async () => {
    const { port, arrived } = await startSigned();
    await send(`smtp://127.0.0.1:${port}`);
    await send(`smtp://localhost:${port}`);
    expect(arrived()).toBe(2);
  });

  test('is refused elsewhere, with the reason tls-failed', async () => {
    const { port, arrived } = await startSigned();
    // The driver then behaves as for a host that is not this machine.
    await expect(
      send(`smtp://127.0.0.1:${port}?tls.rejectUnauthorized=true`),
    ).rejects.toMatchObject({ verdict: 'again', reason: 'tls-failed' });
    expect(arrived()).toBe(0);
  });

  test('is accepted if NODE_EXTRA_CA_CERTS contains its issuer', async () => {
    const { port, certFile, arrived } = await startSigned();
    const driver = new URL('../../src/notifications/channels/email.ts', import.meta.url);
    const script = `
      import { emailDriver } from ${JSON.stringify(driver.href)};
      const smtpUrl = 'smtp://127.0.0.1:${port}?tls.rejectUnauthorized=true';
      const driver = emailDriver({ smtpUrl, from: 'service@example.org', timeoutMs: 5_000 });
      await driver.send(${JSON.stringify(mail)});`;
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: certFile },
    });
    expect(arrived()).toBe(1);
  });
});
