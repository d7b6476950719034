import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startHttpWorld, type HttpWorld } from './harness.ts';
import { smugglingForms } from './smuggling-forms.ts';

// A request that a proxy in front might read differently is refused and ends the connection (RFC 9112 sections 6.3 and
// 11.2). Nothing after it is taken for a request.

let world: HttpWorld;
beforeEach(async () => {
  world = await startHttpWorld();
});
afterEach(() => world.close());

const text = '{"sId":"0x10","val":1}';

/** A request with these headers and this body, followed by the one to smuggle. */
const withSmuggled = (headers: string[], body: string) => {
  const head = (more: string[]) =>
    [
      `POST ${world.pathOf('measurements')} HTTP/1.1`,
      'Host: x',
      `Authorization: ${world.basic()}`,
      ...more,
      '',
      '',
    ].join('\r\n');
  return `${head(headers)}${body}${head([`Content-Length: ${text.length}`])}${text}`;
};

describe('a body whose end is in doubt', () => {
  test.each(smugglingForms(text))(
    'is refused, with what follows: %s',
    async (_name, headers, body) => {
      const said = await world.raw(withSmuggled(headers, body));
      const statuses = [...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
      expect(statuses).toEqual(['400']);
      expect(world.store.stored).toEqual([]);
    },
  );

  test('but two plain requests are two', async () => {
    const close = withSmuggled([`Content-Length: ${text.length}`], text).replace(
      /Host: x(?![\s\S]*Host: x)/,
      'Host: x\r\nConnection: close',
    );
    const said = await world.raw(close);
    expect([...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      '200',
      '200',
    ]);
    expect(world.store.stored).toHaveLength(2);
  });

  test('a refusal before the body was read ends the connection: the body is no request', async () => {
    const inner = `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
    const said = await world.raw(
      `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nContent-Length: ${inner.length + 10}\r\n\r\n${inner}`,
    );
    expect(said).toMatch(/^HTTP\/1\.1 401 /);
    expect(said).toContain('Connection: close');
    expect(world.store.stored).toEqual([]);
  });
});

describe('a request without an end', () => {
  test('is closed after the time that a request may take', async () => {
    await world.close();
    world = await startHttpWorld({ http: { requestTimeoutMs: 200, headersTimeoutMs: 200 } });
    const head = `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\n`;
    const slow = world.raw(`${head}Content-Length: 20\r\n\r\n{`);
    const chunks = world.raw(`${head}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`);
    const headers = world.raw(`${head}X-Endless: `);
    for (const said of await Promise.all([slow, chunks, headers]))
      expect(said).toMatch(/^HTTP\/1\.1 408 /);
    // The answer is sent before what the request held is given back.
    await expect
      .poll(() => world.connector.snapshot())
      .toEqual({ underWay: 0, waiting: 0, polls: 0, refusals: 0, bytes: 0 });
  });

  test('headers beyond 16 KiB are 431', async () => {
    const said = await world.raw(
      `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
    );
    expect(said).toMatch(/^HTTP\/1\.1 431 /);
  });
});
