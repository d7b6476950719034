import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLossyProxy } from './lossy-proxy.ts';
import { runProgram } from './process.ts';
import { startRunningService, type RunningService } from './running-service.ts';

describe('the simulator', () => {
  let service: RunningService;
  beforeAll(async () => void (service = await startRunningService()));
  afterAll(() => service?.close());

  const simulate = (args: string[], options: { url?: string; input?: string } = {}) =>
    runProgram(
      process.execPath,
      ['src/cli/simulate.ts', '--url', options.url ?? service.url, ...args],
      { input: options.input },
    );

  async function countRows(table: 'account' | 'device' | 'measurement'): Promise<number> {
    const { rows } = await service.database.db.query(`select count(*) as n from ${table}`);
    return Number(rows[0]?.['n']);
  }

  it('finds everything that was acknowledged, and removes what it made', async () => {
    const run = simulate(['--devices', '6', '--seconds', '2', '--rate', '12', '--protocol', 'all']);
    const status = await run.ended();
    const output = run.stdout();
    expect(output).toContain('Registering: 6 of 6\n');
    expect(output).toMatch(
      /[1-9]\d* of \d+ acknowledged {2}p50 \S+ ms {2}p99 \S+ ms {2}[1-9]\d* events/,
    );
    expect(output).toMatch(/[1-9]\d* events are recorded/);
    expect(output).toContain(
      'Everything that was acknowledged is stored exactly once, as it was sent.',
    );
    expect(run.stderr()).toBe('');
    expect(status).toBe(0);
    // Removals are cleared piece by piece, after the answer.
    await expect.poll(() => countRows('account')).toBe(0);
    await expect.poll(() => countRows('device')).toBe(0);
  });

  it('reports what is missing and fails if one measurement cannot be read back', async () => {
    const proxy = await startLossyProxy(service.url);
    const run = simulate(['--devices', '3', '--seconds', '1', '--rate', '5'], { url: proxy.url });
    const status = await run.ended();
    await proxy.close();
    expect(run.stdout()).toContain('DIFFERENCE: 1 acknowledged but not stored: 0x1');
    expect(run.stdout()).not.toContain('Everything that was acknowledged is stored');
    expect(status).toBe(1);
  });

  it('ends early if it is interrupted, and compares what there is', async () => {
    const before = await countRows('measurement');
    const args = ['--devices', '2', '--seconds', '600', '--rate', '10', '--protocol', 'http'];
    const run = simulate([...args, '--keep']);
    await run.printed(/Installing : 2 of 2/);
    await expect.poll(() => countRows('measurement')).toBeGreaterThan(before + 8);
    run.child.kill('SIGINT');
    expect(await run.ended()).toBe(0);
    expect(run.stdout()).toContain('Everything that was acknowledged is stored');
    const { rows } = await service.database.db.query('select distinct connector_id from device');
    expect(rows).toEqual([{ connector_id: 2 }]);
    expect(run.stdout()).toMatch(/Kept the account \S+ with the password \S+\n/);
  });

  it('uses an existing account, and does not remove it', async () => {
    const login = { email: 'ada@example.org', password: 'a long pass phrase' };
    const registered = await fetch(`${service.url}/v2/accounts`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(login),
    });
    expect(registered.status).toBe(200);
    const devicesBefore = await countRows('device');
    const args = ['--account', login.email, '--devices', '2', '--seconds', '1'];
    const run = simulate(args, { input: `${login.password}\n` });
    expect(await run.ended()).toBe(0);
    expect(run.stdout()).toContain('Logged in to the account ada@example.org');
    await expect.poll(() => countRows('device')).toBe(devicesBefore);

    const wrong = simulate(args, { input: 'not the password\n' });
    expect(await wrong.ended()).toBe(1);
    expect(wrong.stderr()).toContain('/v2/accounts/login answered 401');
  });
});
