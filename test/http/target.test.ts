import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HttpOptions } from '../../src/http/server.ts';
import { routes } from './routes.ts';
import { startTestHttp, type TestHttp } from './start.ts';

describe('what is asked', () => {
  let server: TestHttp;
  const asked: { url: string | undefined; host: string | undefined }[] = [];
  beforeAll(async () => {
    const handle: NonNullable<HttpOptions['inFront']>['handle'] = ({ url, headers }, response) => {
      asked.push({ url, host: headers.host });
      response.end('taken');
    };
    server = await startTestHttp({ routes, inFront: { prefix: '', handle } });
  });
  afterAll(() => server.close());

  test.each<[string, string, string?]>([
    ['/a?b=http://c/d', '/a?b=http://c/d'],
    ['http://sensors.example:8080/a/b?c=1', '/a/b?c=1', 'sensors.example:8080'],
    ['HTTPS://sensors.example', '/', 'sensors.example'],
    ['http://sensors.example?a=1', '/?a=1', 'sensors.example'],
    ['/a%2Db%2db/%41%7E?c=%2D', '/a-b-b/A~?c=%2D'],
    // Escaped separators, and an escaped percent sign, stay escaped.
    ['/a%2Fb%252Dc%25%20%C3%BC', '/a%2Fb%252Dc%25%20%C3%BC'],
    ['*', '*'],
    ['/half%2', '/half%2'],
  ])('%s becomes the path %s', async (target, url, host = 'asked') => {
    asked.length = 0;
    const answer = await sendTo(server.port, `POST ${target} HTTP/1.1\r\nHost: asked\r\n\r\n`);
    expect(answer).toContain('taken');
    expect(asked).toEqual([{ url, host }]);
  });

  test.each<[string[], number, boolean]>([
    [['Host: a'], 1, true],
    [['Host:'], 1, true],
    [['Accept: */*', 'hOST: a'], 1, true],
    [['Accept: host'], 1, false],
    [['Host: a', 'host: a'], 1, false],
    [[], 0, true],
    [['Host: a', 'Host: b'], 0, false],
  ])('%j in HTTP/1.%d names its host: %s', async (headers, minor, expected) => {
    const head = [`GET / HTTP/1.${minor}`, ...headers].join('\r\n');
    const answer = await sendTo(server.port, `${head}\r\n\r\n`);
    expect(answer).toMatch(expected ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 400 /);
  });
});

async function sendTo(port: number, text: string): Promise<string> {
  let said = '';
  for await (const chunk of connect(port, '127.0.0.1').end(text)) said += String(chunk);
  return said;
}

describe('over HTTP', () => {
  let server: TestHttp;
  const asked: (string | undefined)[] = [];
  beforeAll(async () => {
    server = await startTestHttp({
      routes,
      inFront: {
        prefix: '/devices/',
        handle: ({ url }, response) => {
          asked.push(url);
          response.end('a device');
        },
      },
      upgrades: {
        '/mqtt': (_request, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
      },
    });
  });
  afterAll(() => server.close());

  const send = (text: string) => sendTo(server.port, text);

  test('routes, devices and upgrades accept an absolute target', async () => {
    const address = `http://127.0.0.1:${server.port}`;
    expect(await send(`GET ${address}/address HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 200 /,
    );
    expect(await send(`POST ${address}/devices/a%2Db/up/x HTTP/1.1\r\nHost: x\r\n\r\n`)).toContain(
      'a device',
    );
    expect(asked).toEqual(['/devices/a-b/up/x']);
    const upgrade = 'Host: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';
    expect(await send(`GET ${address}/mqtt HTTP/1.1\r\n${upgrade}`)).toMatch(/^HTTP\/1\.1 101 /);
    expect(await send(`GET /mqtt HTTP/1.1\r\nHost: x\r\n${upgrade}`)).toMatch(/^HTTP\/1\.1 400 /);
  });
});
