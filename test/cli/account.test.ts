import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/audit/audit.ts';
import { runOn } from '../support/template.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { runProgram } from '../journeys/process.ts';
import { type TestService, testService } from '../journeys/service.ts';

async function account(env: Record<string, string>, args: string[], input = '') {
  const program = runProgram(process.execPath, ['src/cli/account.ts', ...args], { env, input });
  const status = await program.ended();
  return { status, stdout: program.stdout(), stderr: program.stderr() };
}

describe('npm run account, beside a running service with registration closed', () => {
  let service: TestService;
  let env: Record<string, string>;
  beforeAll(async () => {
    const change = (config: Parameters<NonNullable<Options['change']>>[0]) => ({
      ...config,
      accounts: { ...config.accounts, openRegistration: false },
    });
    service = await testService({}, { change });
    env = {
      DATABASE_URL: service.databaseUrl,
      SECRET: 'a secret that only this test knows, long enough',
    };
  });
  afterAll(() => service.close());
  type Options = NonNullable<Parameters<typeof testService>[1]>;

  const post = (path: string, email: string, password: string) =>
    fetch(service.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    });
  const get = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${service.url}/v2/accounts`, { headers })).status;
  };

  test('reset-link prints a link that sets a password once, without any mail', async () => {
    await account(env, ['create', 'lost@example.com'], 'first password\n');
    const made = await account(env, ['reset-link', 'LOST@example.com']);
    expect(made).toMatchObject({ status: 0, stderr: '' });
    const token = /^http:\/\/\S+\/reset\?token=([\w-]+)$/m.exec(made.stdout)?.[1];
    const reset = () =>
      fetch(`${service.url}/v2/accounts/password/reset`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token, password: 'second password' }),
      });
    expect([(await reset()).status, (await reset()).status]).toEqual([200, 400]);
    const entered = await post('/v2/accounts/login', 'lost@example.com', 'second password');
    expect(entered.status).toBe(200);
    const other = {
      ...env,
      SECRET: 'another secret than the one that the service has, long enough',
    };
    const refused = await account(other, ['reset-link', 'lost@example.com']);
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toContain('not the secret that the service uses');
    expect((await account(env, ['reset-link', 'no@example.com'])).status).toBe(1);
    await account(env, ['delete', 'lost@example.com', '--yes']);
  });

  test('creates, lists, resets and deletes accounts', async () => {
    expect((await post('/v2/accounts', 'me@example.com', 'first password')).status).toBe(403);
    expect(await account(env, ['list'])).toMatchObject({ stdout: 'There are no accounts.\n' });

    const created = await account(env, ['create', 'me@example.com'], 'first password\n');
    expect(created).toMatchObject({ status: 0, stderr: '' });
    const login = await post('/v2/accounts/login', 'me@example.com', 'first password');
    const { accountAuthToken, accountAuthUuid } = (await login.json()) as Record<string, string>;
    expect(created.stdout).toContain(accountAuthUuid);
    const mayText = async () => {
      const { rows } = await runOn(service.databaseUrl, (client) =>
        client.query<{ may: boolean }>('select may_send_sms as may from account'),
      );
      return rows.map(({ may }) => may);
    };
    expect(await mayText()).toEqual([true]);
    expect(await account(env, ['deny', 'ME@example.com', 'sms'])).toMatchObject({
      status: 0,
      stdout: 'ME@example.com may no longer send sms.\n',
    });
    expect(await mayText()).toEqual([false]);
    const listed = await account(env, ['list']);
    expect(listed.stdout).toMatch(
      new RegExp(`^${accountAuthUuid}  \\d{4}-\\d\\d-\\d\\d  0  me@example.com\n$`),
    );

    const reset = await account(env, ['reset-password', 'ME@example.com'], 'second password');
    expect(reset.status).toBe(0);
    expect(await get(accountAuthToken ?? '')).toBe(401);
    expect((await post('/v2/accounts/login', 'me@example.com', 'first password')).status).toBe(401);
    expect((await post('/v2/accounts/login', 'me@example.com', 'second password')).status).toBe(
      200,
    );

    for (const typed of ['no\n', 'yes\n', '', 'you@example.com\n']) {
      const kept = await account(env, ['delete', 'ME@example.com'], typed);
      const stderr = 'Nothing was deleted: expected me@example.com or --yes.\n';
      expect(kept).toMatchObject({ status: 1, stderr });
      expect(kept.stdout).toBe(
        'This deletes me@example.com with its 0 devices and all their history.\n',
      );
    }
    expect((await post('/v2/accounts/login', 'me@example.com', 'second password')).status).toBe(
      200,
    );
    const deleted = await account(env, ['delete', 'ME@example.com'], 'me@example.com\n');
    expect(deleted.status).toBe(0);
    expect((await post('/v2/accounts/login', 'me@example.com', 'second password')).status).toBe(
      401,
    );
  });

  test('shows and changes the quotas of an account', async () => {
    await account(env, ['create', 'quota@example.com'], 'first password\n');
    const quota = (...args: string[]) => account(env, ['quota', 'quota@example.com', ...args]);
    expect((await quota()).stdout).toMatch(/^devices  0 of 10000\ndevicesPerDay  0 of 20000\n/);
    expect(await quota('devices', '1')).toMatchObject({
      status: 0,
      stdout: 'devices  0 of 1  (default 10000)\n',
    });
    const login = await post('/v2/accounts/login', 'quota@example.com', 'first password');
    const { accountAuthToken } = (await login.json()) as Record<string, string>;
    const register = () =>
      fetch(`${service.url}/v2/devices`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${accountAuthToken}`,
        },
        body: '{"device":{},"module":[]}',
      });
    expect([(await register()).status, (await register()).status]).toEqual([200, 403]);
    expect((await quota('devices', 'default')).stdout).toBe('devices  1 of 10000\n');
    expect(await quota('smsPerDay', '100')).toMatchObject({
      status: 0,
      stdout: 'smsPerDay  0 of 100  (default 20)\n',
    });
    expect((await register()).status).toBe(200);

    const [unknown, none, wrong] = await Promise.all([
      quota('elephants', '1'),
      account(env, ['quota', 'nobody@example.com']),
      quota('devices', '-1'),
    ]);
    expect(unknown).toMatchObject({ status: 1, stdout: '' });
    expect(unknown.stderr).toMatch(/^No quota elephants. Quotas: devices, /);
    expect(none).toMatchObject({ status: 1, stderr: 'No account nobody@example.com.\n' });
    expect(wrong.stderr).toBe('devices: expected a whole number above 0 or "default", got "-1".\n');
  });

  test('disables and enables, with entries in the audit trail', async () => {
    const email = 'audit@example.com';
    await account(env, ['create', email], 'first password\n');
    const logIn = async () => {
      const answer = await post('/v2/accounts/login', email, 'first password');
      const body = (await answer.json()) as Record<string, string>;
      return { status: answer.status, token: body['accountAuthToken'] ?? '' };
    };
    const { token } = await logIn();
    expect(await account(env, ['disable', email])).toMatchObject({
      status: 0,
      stdout:
        `${email} is disabled: its sessions have ended, and its devices can no longer log in.\n` +
        'Nothing was deleted.\n',
    });
    expect((await account(env, ['disable', email])).stdout).toBe(
      `${email} was already disabled.\n`,
    );
    expect([await get(token), (await logIn()).status]).toEqual([401, 403]);
    expect((await account(env, ['list'])).stdout).toMatch(
      new RegExp(`  ${email}  disabled \\d{4}-\\d\\d-\\d\\d\n`),
    );
    expect((await account(env, ['enable', email])).stdout).toBe(
      `${email} may log in again, and its devices can log in with their existing tokens.\n`,
    );
    for (const value of ['7', 'default']) await account(env, ['quota', email, 'devices', value]);
    await account(env, ['deny', email, 'sms']);
    await account(env, ['reset-password', email], 'first password');
    const answer = await fetch(`${service.url}/v2/accounts/audit`, {
      headers: { authorization: `Bearer ${(await logIn()).token}` },
    });
    const { entries } = (await answer.json()) as { entries: AuditEntry[] };
    const byOperator = entries.filter(({ by }) => by === 'operator');
    expect(byOperator.map(({ kind, details }) => [kind, details])).toEqual([
      ['password-changed', {}],
      ['sms-denied', {}],
      ['quota-changed', { quota: 'devices', value: 'default' }],
      ['quota-changed', { quota: 'devices', value: 7 }],
      ['enabled', {}],
      ['disabled', {}],
      ['registered', {}],
    ]);
    expect(byOperator.flatMap(({ address, sessionId }) => [address, sessionId])).toEqual(
      Array(14).fill(undefined),
    );
  });

  test('says what is wrong and exits with 1, or with 2 for what it does not understand', async () => {
    const [short, empty, nobody, argument, unknown] = await Promise.all([
      account(env, ['create', 'no address'], 'short\n'),
      account(env, ['create', 'you@example.com']),
      account(env, ['delete', 'nobody@example.com', '--yes']),
      // A password is never an argument, because everybody on the machine could see it.
      account(env, ['create', 'you@example.com', 'correct horse']),
      account(env, ['explode']),
    ]);
    expect(short).toMatchObject({ status: 1, stdout: '' });
    expect(short.stderr).toMatch(/email: .*\npassword: expected 8 to 128 characters/);
    expect(empty).toMatchObject({ status: 1 });
    expect(empty.stderr).toMatch(/^No password/);
    const stderr = 'No account nobody@example.com.\n';
    expect(nobody).toMatchObject({ status: 1, stderr });
    expect([argument.status, unknown.status]).toEqual([2, 2]);
  });
});

test.each([
  'account list',
  'account delete me@example.com --yes',
  'account reset-link me@example.com',
  'clock',
  'clock believe',
  'retention apply',
  'secret status',
  'secret accept',
])('npm run %s creates no database if DATA_DIR has none', async (command) => {
  const [name, ...args] = command.split(' ');
  const dir = makeTemporaryDir();
  const env = { DATA_DIR: join(dir, 'mistyped') };
  try {
    const program = runProgram(process.execPath, [`src/cli/${name}.ts`, ...args], { env });
    expect(await program.ended()).toBe(1);
    expect(program.stderr()).toBe(`DATA_DIR ${env.DATA_DIR}: holds no database.\n`);
    expect(program.stdout()).toBe('');
    expect(existsSync(env.DATA_DIR)).toBe(false);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('npm run account works on the embedded database, with no service running', async () => {
  const dir = makeTemporaryDir();
  const env = { DATA_DIR: join(dir, 'data') };
  try {
    const created = await account(env, ['create', 'me@example.com'], 'correct horse\n');
    expect(created.status).toBe(0);
    expect(created.stderr).toMatch(
      /^Creating a database in \S+\/data \(first start\)\.\nMigrated the database to .*\n$/,
    );
    const listed = await account(env, ['list']);
    expect(listed).toMatchObject({ status: 0, stderr: '' });
    expect(listed.stdout).toContain('me@example.com');
  } finally {
    rmSync(dir, { recursive: true });
  }
});
