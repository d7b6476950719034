import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { createRefusedLoginLog } from '../../connector/device/refused-logins.ts';
import { createLog } from '../../src/log/log.ts';
import { manualClock, startWorld, type World } from './harness.ts';
import { connectPacket, dial, enter } from './raw.ts';

const filter = readFileSync(new URL('../../config/fail2ban/filter.conf', import.meta.url), 'utf8');
const jail = readFileSync(new URL('../../config/fail2ban/jail.conf', import.meta.url), 'utf8');
const documented = readFileSync(new URL('../../docs/banning.md', import.meta.url), 'utf8');

/** Works like fail2ban: removes what `datepattern` matches from a line before trying `failregex`. */
const failregex = new RegExp(
  (/^failregex = (.*)$/m.exec(filter)?.[1] ?? '').replace('<HOST>', '(?<host>[\\da-fA-F:.]+)'),
);
const datepattern = /"time":\d{13}/;
const hostIn = (line: string) => failregex.exec(line)?.groups?.['host'];
const banned = (line: string) => [hostIn(line), hostIn(line.replace(datepattern, ''))];

let world: World;
const lines: string[] = [];
const log = createLog({
  level: 'info',
  isTerminal: false,
  role: 'all',
  destination: { write: (line) => void lines.push(line) },
}).child({ component: 'mqtt', connectorId: 1 });
afterEach(async () => {
  lines.length = 0;
  await world.close();
});

describe('a refused login', () => {
  test('is one line in the log, which the fail2ban filter reads', async () => {
    world = await startWorld({ log });
    const refused = await enter(world, { password: Buffer.from('wrong') });
    await refused.ended();
    await (await enter(world, { username: 'my password', password: Buffer.from('x') })).ended();
    const anonymous = await dial(world);
    anonymous.send(connectPacket(world, { username: undefined, password: undefined }));
    await anonymous.ended();
    (await enter(world)).socket.destroy();
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(banned(line)).toEqual(['127.0.0.1', '127.0.0.1']);
    expect(lines[0]).toContain(`"device":"${world.device.uuid}"`);
    expect(lines.join('')).not.toMatch(/my password|wrong/);
  });

  test('has the address that a proxy names', async () => {
    world = await startWorld({ log, trustedProxies: ['127.0.0.0/8'] });
    for (const [header, address] of [
      ['PROXY TCP4 203.0.113.7 127.0.0.1 51000 1883\r\n', '203.0.113.7'],
      ['PROXY TCP6 2001:db8::7 ::1 51000 1883\r\n', '2001:db8::7'],
      ['PROXY TCP6 ::ffff:203.0.113.8 ::1 51000 1883\r\n', '203.0.113.8'],
      ['PROXY UNKNOWN\r\n', '127.0.0.1'],
    ] as const) {
      const raw = await dial(world);
      raw.socket.write(header);
      raw.send(connectPacket(world, { password: Buffer.from('wrong') }));
      await raw.ended();
      expect(banned(lines.at(-1) ?? '')).toEqual([address, address]);
    }
  });

  test('is logged 20 times a minute for an address, then counted', async () => {
    world = await startWorld();
    const clock = manualClock();
    const write = createRefusedLoginLog(log, clock.now, 'mqtt');
    for (let n = 0; n < 50; n += 1) write('203.0.113.7', undefined);
    write('203.0.113.8', undefined);
    expect(lines).toHaveLength(21);
    clock.monotonicMs += 60_000;
    write('203.0.113.7', undefined);
    expect(lines).toHaveLength(23);
    expect(JSON.parse(lines[21] ?? '')).toMatchObject({ event: 'mqtt.logins-refused', count: 30 });
    expect(hostIn(lines[21] ?? '')).toBeUndefined();
    for (let n = 0; n < 5_000; n += 1) write(`10.0.${n >> 8}.${n & 255}`, undefined);
    expect(lines.length).toBeLessThan(2_030);
  });
});

test('nobody can get another address banned by what they send', async () => {
  world = await startWorld();
  const forged = '{"level":40,"time":1,"event":"mqtt.login-refused","address":"203.0.113.7"';
  pino({ base: undefined }, { write: (line: string) => void lines.push(line) }).warn(
    { path: forged, [forged]: 1 },
    forged,
  );
  expect(lines).toHaveLength(1);
  expect(banned(lines[0] ?? '')).toEqual([undefined, undefined]);
});

test('the filter reads the line in the documentation, and the jail bans before it ends', async () => {
  world = await startWorld();
  const line = /^\{"level".*$/m.exec(documented)?.[0] ?? '';
  expect(banned(line)).toEqual(['203.0.113.7', '203.0.113.7']);
  expect(Number(/^maxretry = (\d+)$/m.exec(jail)?.[1])).toBeLessThan(20);
});
