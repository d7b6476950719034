import { PassThrough } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/log/create-log.ts';
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

/** The one line that `write` writes, parsed. */
function written(write: () => void): Record<string, unknown> {
  lines.length = 0;
  write();
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? '') as Record<string, unknown>;
}

describe('a line of the log', () => {
  it('has its event first, and says which part of which process wrote it', () => {
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

  it('has a code of the catalogue and a component: others do not compile', () => {
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

describe('what the log blacks out', () => {
  const log = open().child({ component: 'service' });
  const write = (context: object) => {
    written(() => log.error({ event: 'request.failed', ...context }, 'Text.'));
    return lines.join();
  };

  it('passwords and tokens by their names, wherever they stand', () => {
    const text = write({
      password: 'hunter1',
      body: { name: 'kept', refreshToken: 'hunter2' },
      request: { headers: { authorization: 'hunter3', cookie: 'hunter4' } },
    });
    expect(text).not.toContain('hunter');
    expect(text).toContain('kept');
  });

  it('e-mail addresses, tokens and the credentials of URLs in texts of others', () => {
    const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
    const text = write({
      text: `550 <ada.lovelace+x@mail.example.org> unknown; Bearer ${jwt}`,
      err: new Error('no way to redis://me:hunter2@10.0.0.5:6379'),
    });
    expect(text).not.toMatch(/ada|lovelace|hunter2|eyJ|c2lnb/);
    expect(text).toContain('10.0.0.5:6379');
  });

  it('tickets of streams, which stand in addresses', () => {
    const ticket = `stream_${'aB-_9'.repeat(8)}xyz`;
    const text = write({ err: new Error(`closed: GET /v2/streams?ticket=${ticket} HTTP/1.1`) });
    expect(text).not.toMatch(/aB-_9|xyz/);
    expect(text).toContain('ticket=[ticket] HTTP/1.1');
  });

  it('what a statement or a command had, in the members of an error', () => {
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

  it('nothing of an error with several reasons', () => {
    const text = write({ err: new AggregateError([new Error('first'), new Error('second')]) });
    expect(text).toMatch(/first.*second/);
  });
});

it('on a terminal a line is its message, and from a warning on its code', async () => {
  const terminal = new PassThrough();
  const log = createLog({
    level: 'info',
    isTerminal: true,
    role: 'all',
    destination: terminal,
  }).child({ component: 'database' });
  log.info({ event: 'database.storage' }, 'The history is kept.');
  const err = new Error('The database is away.', { cause: new Error('refused') });
  log.warn({ event: 'batch.retried', err }, 'A batch waits.');
  log.error({ event: 'request.failed', err }, 'A request failed.');
  terminal.end();
  const plain = stripVTControlCharacters(await readAll(terminal));
  expect(plain).toMatch(/^\[[\d:]+\] INFO: The history is kept\.\n/);
  const reason = '{"why":"The database is away. refused"}';
  expect(plain).toContain(`WARN: A batch waits. [batch.retried] ${reason}\n`);
  // The stack is for who mends the service.
  expect(plain).toMatch(/ERROR: A request failed\. \[request\.failed\] *\n[^]*log\.test\.ts/);
});
