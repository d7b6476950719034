import { PassThrough } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { createLog, hidePrivate } from '../../src/log/log.ts';
import type { LogContext } from '../../src/log/logger.ts';

const lines: string[] = [];
const open = (isTerminal = false, connectorId?: number) =>
  createLog({
    level: 'debug',
    isTerminal,
    role: connectorId === undefined ? 'api' : 'connector',
    connectorId,
    destination: { write: (line) => void lines.push(line) },
  });

/** The only line that `write` writes, parsed. */
function written(write: () => void): Record<string, unknown> {
  lines.length = 0;
  write();
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? '') as Record<string, unknown>;
}

describe('a line of the log', () => {
  it('has its event first, and names the component and the process that wrote it', () => {
    const log = open(false, 4).child({ component: 'mqtt', connectorId: 4 });
    const line = written(() => log.warn({ event: 'downlink.unread', device: 'd' }, 'Text.'));
    expect(Object.keys(line).slice(2)).toEqual([
      'event',
      'device',
      'component',
      'connectorId',
      'role',
      'msg',
    ]);
    expect(line).toMatchObject({ component: 'mqtt', connectorId: 4, role: 'connector' });
  });

  it('has a code of the catalogue and a component; others do not compile', () => {
    const log = open().child({ component: 'http' });
    // @ts-expect-error -- no such code
    const wrong: LogContext = { event: 'bridge.quarrel' };
    // @ts-expect-error -- no code at all
    const none: LogContext = { err: new Error('x') };
    // @ts-expect-error -- no such component
    open().child({ component: 'kitchen' });
    // @ts-expect-error -- no component
    expect(open().warn).toBeUndefined();
    expect([wrong, none]).toHaveLength(2);
    expect(written(() => log.debug({ event: 'request.done' }, 'x'))).toMatchObject({ level: 20 });
  });
});

describe('what the log redacts', () => {
  const log = open().child({ component: 'service' });
  const write = (context: object) => {
    written(() => log.error({ event: 'request.failed', ...context }, 'Text.'));
    return lines.join();
  };

  it('passwords and tokens by their names, wherever they are', () => {
    const text = write({
      password: 'hunter1',
      body: { name: 'kept', refreshToken: 'hunter2' },
      request: { headers: { authorization: 'hunter3', cookie: 'hunter4' } },
    });
    expect(text).not.toContain('hunter');
    expect(text).toContain('kept');
  });

  it('e-mail addresses, tokens and credentials in URLs, in text from elsewhere', () => {
    const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
    const text = write({
      text: `550 <ada.lovelace+x@mail.example.org> unknown; Bearer ${jwt}`,
      err: new Error('no way to redis://me:hunter2@10.0.0.5:6379'),
    });
    expect(text).not.toMatch(/ada|lovelace|hunter2|eyJ|c2lnb/);
    expect(text).toContain('10.0.0.5:6379');
  });

  it('tickets of streams, which are in URLs', () => {
    const ticket = `stream_${'aB-_9'.repeat(8)}xyz`;
    const text = write({ err: new Error(`closed: GET /v2/streams?ticket=${ticket} HTTP/1.1`) });
    expect(text).not.toMatch(/aB-_9|xyz/);
    expect(text).toContain('ticket=[ticket] HTTP/1.1');
  });

  it('values of a statement or a command, in members of an error', () => {
    const cause = Object.assign(new Error('duplicate key'), {
      code: '23505',
      detail: 'Key (email)=(hunter2) already exists.',
      parameters: ['hunter2'],
      constraint: 'account_email',
    });
    const command = { name: 'set', args: ['hunter2'] };
    const text = write({ err: Object.assign(new Error('failed', { cause }), { command }) });
    expect(text).not.toContain('hunter2');
    expect(text).toContain('23505');
    expect(text).toContain('account_email');
  });

  it('leaves the line JSON if an address or token follows an escape', () => {
    const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
    for (const before of ['\n', '\u001b', '\\', '"', '\t\\n', '', '//', 'ü'])
      for (const secret of ['bob@nas', 'a&b=c~d@example.org', jwt, `stream_${'x'.repeat(30)}`]) {
        const text = write({ text: `${before}${secret}` });
        const { text: hidden } = JSON.parse(text) as { text: string };
        expect(hidden).toMatch(/\[(e-mail|token|ticket|redacted)\]/);
        expect(hidden).not.toMatch(/bob|a&b|c2lnb|xxx/);
      }
  });

  it('keys and secrets of webhooks, which a library may repeat with a header', () => {
    const text = write({ text: `Bearer sens_${'k'.repeat(43)}, whsec_${'s'.repeat(32)}` });
    expect(text).toContain('Bearer [key], [secret]');
  });

  it('keeps what is no address: packages, versions, decorators', () => {
    const at = 'at Layer.<anonymous> (/app/node_modules/@koa/router/dist/index.js:5:7)';
    const text = write({ text: `${at} koa@3.0.0 @midnight a @ b` });
    expect(text).toContain(`${at} koa@3.0.0 @midnight a @ b`);
  });

  it('nothing of an error with several causes', () => {
    const text = write({ err: new AggregateError([new Error('first'), new Error('second')]) });
    expect(text).toMatch(/first.*second/);
  });
});

describe('a line with text from a stranger', () => {
  const shapes: Record<string, (n: number) => string> = {
    'one run of an address without an @': (n) => 'a'.repeat(n),
    'a run in front of an @ that is no address': (n) => `${'a'.repeat(n)}@ `,
    'an @ at each second place': (n) => 'a@'.repeat(n / 2),
    'domains without an end': (n) => `@${'a-'.repeat(n / 2)}@${'b.'.repeat(n / 2)}`,
    'beginnings of tokens': (n) => 'eyJ-'.repeat(n / 4),
    'beginnings of tokens with full stops': (n) => 'eyJ.-'.repeat(n / 5),
    'beginnings of tickets': (n) => 'stream_-'.repeat(n / 8),
    'beginnings of keys': (n) => 'sens_whsec_'.repeat(n / 11),
    slashes: (n) => '/'.repeat(n),
    'slashes and an @ far away': (n) => `${'//a'.repeat(n / 3)} @`,
    'backslashes in front of an @': (n) => `${'\\'.repeat(n)}u@x.de ${'\\\\n@'.repeat(n / 4)}`,
  };
  /** A quadratic pattern would take longer than all tests together, so this one would time out. */
  const large = 2_000_000;

  it.each(Object.keys(shapes))('is read in linear time: %s', (name) => {
    const line = `@eyJstream_sens_ ${shapes[name]?.(large) ?? ''}`;
    expect(hidePrivate(line).length).toBeGreaterThan(0);
  });

  // Controls of both sets, characters that reorder and hide text, one beyond 16 bits, line separators.
  const odd = 'a\r\u001b[31m\u009b31m\u0085\u007f\u202e\u2066\u200b\ufeff\u2028\u{e0041}ü😀';

  it('escapes what a terminal would obey, and what reorders or hides text', () => {
    const log = open().child({ component: 'mqtt' });
    const line = written(() => log.warn({ event: 'mqtt.foreign-topic', topic: odd }, 'Text.'));
    expect(line).toMatchObject({ topic: odd });
    expect(lines[0]).toMatch(/"topic":"[ -~ü😀]*"/u);
  });

  it.each([
    ['in a member', (text: string) => ({ event: 'mqtt.foreign-topic' as const, topic: text })],
    ['in an error', (text: string) => ({ event: 'request.failed' as const, err: new Error(text) })],
  ])('has no control on a terminal either: %s', async (_, contextOf) => {
    const shown = new PassThrough();
    const log = createLog({ level: 'info', isTerminal: true, role: 'all', destination: shown });
    log.child({ component: 'mqtt' }).error(contextOf(odd), 'Text.');
    shown.end();
    const text = stripVTControlCharacters(await readAll(shown));
    expect(text).toContain('Text.');
    expect(text).toContain('202e');
    expect(text).not.toMatch(/[^\P{Cc}\n\t]|\p{Cf}|\u2028/u);
    expect(text).toContain('[31m');
  });

  it('is truncated if it is too long, and stays JSON', () => {
    const log = open().child({ component: 'http' });
    const many = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, n) => [`m${n}`, 'x'.repeat(9)]),
    );
    for (const context of [
      { text: 'ü'.repeat(1_000_000) },
      { list: Array.from({ length: 100_000 }, String) },
      { err: new Error('😀'.repeat(100_000)) },
      { many },
    ]) {
      const line = written(() => log.error({ event: 'request.failed', ...context }, 'Text.'));
      expect(lines[0]?.length).toBeLessThanOrEqual(16_384);
      expect(lines[0]?.endsWith('\n')).toBe(true);
      expect(line).toMatchObject({ event: 'request.failed', component: 'http', msg: 'Text.' });
    }
  });
});

describe('lines of one event', () => {
  const burst = 100;

  it('have a burst and a rate; the number of omitted lines is logged', () => {
    vi.useFakeTimers();
    let monotonicMs = 0;
    const written: { event: string; of?: string; omitted?: number; level: number }[] = [];
    const log = createLog({
      level: 'info',
      isTerminal: false,
      role: 'api',
      monotonicClock: () => monotonicMs,
      destination: { write: (line) => void written.push(JSON.parse(line)) },
    }).child({ component: 'http' });
    const unavailable = (times: number) => {
      for (let n = 0; n < times; n += 1) log.warn({ event: 'request.unavailable' }, 'Text.');
    };
    unavailable(1_000);
    expect(written).toHaveLength(burst);
    // Lines of other events are still written.
    log.error({ event: 'request.failed' }, 'Text.');
    expect(written).toHaveLength(burst + 1);
    monotonicMs = 500;
    unavailable(1_000);
    expect(written).toHaveLength(burst + 1 + 10);
    vi.advanceTimersByTime(10_000);
    expect(written.at(-1)).toMatchObject({
      event: 'log.lines-omitted',
      of: 'request.unavailable',
      omitted: 1_890,
      component: 'service',
      role: 'api',
    });
    // fail2ban reads each of these. connector/device/refused-logins.ts limits them.
    for (let n = 0; n < 500; n += 1) log.warn({ event: 'mqtt.login-refused' }, 'Text.');
    expect(written).toHaveLength(burst + 1 + 10 + 1 + 500);
    vi.useRealTimers();
  });
});

it('on a terminal a line is its message, with the code from warnings on', async () => {
  const terminal = new PassThrough();
  const log = createLog({
    level: 'info',
    isTerminal: true,
    role: 'all',
    destination: terminal,
  }).child({ component: 'database' });
  log.info({ event: 'database.storage' }, 'The history is kept.');
  const err = new Error('The database is unreachable.', { cause: new Error('refused') });
  log.warn({ event: 'batch.retried', err }, 'A batch waits.');
  log.error({ event: 'request.failed', err }, 'A request failed.');
  terminal.end();
  const plain = stripVTControlCharacters(await readAll(terminal));
  expect(plain).toMatch(/^\[[\d:]+\] INFO: The history is kept\.\n/);
  const reason = '{"why":"The database is unreachable. refused"}';
  expect(plain).toContain(`WARN: A batch waits. [batch.retried] ${reason}\n`);
  // The stack is for the developers of the service.
  expect(plain).toMatch(/ERROR: A request failed\. \[request\.failed\] *\n[^]*log\.test\.ts/);
});
