import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { StartError } from '../../src/start-error.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { refusedLine, refusedLines } from '../process/refused-start.ts';

const dir = makeTemporaryDir();
afterAll(() => rmSync(dir, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

/** The lines of a start that fails at its settings. */
async function linesOf(env: Record<string, string>): Promise<string[]> {
  const error: unknown = await loadConfig(env).catch((thrown: unknown) => thrown);
  if (error instanceof StartError) return error.lines;
  throw new Error('The settings were taken.');
}

describe('CONFIG_FILE', () => {
  test('that is not JSON: file, line, column and what was found, in one line', async () => {
    const path = file('broken.json', '{\n  "retention": {\n    "eventsDays": 3,\n  }\n}\n');
    expect(await refusedLine({ CONFIG_FILE: path })).toBe(
      `${path}: is not JSON: line 4, column 3: expected a name in double quotes, found "}".`,
    );
  });

  test('that is a module which throws, or no module: one line without a stack', async () => {
    const path = file('throws.ts', 'throw new Error("not\\nmine");\n');
    expect(await refusedLine({ CONFIG_FILE: path })).toBe(
      `${path}: cannot be loaded (Error: not mine).`,
    );
    expect(await refusedLine({ CONFIG_FILE: file('syntax.ts', 'export default {\n') })).toMatch(
      /syntax\.ts: cannot be loaded \(SyntaxError: .+\)\.$/,
    );
  });

  test.each([
    ['list.json', '[]', 'expected an object of settings, found a list'],
    ['null.json', 'null', 'expected an object of settings, found null'],
    [
      'empty.json',
      '',
      'is not JSON: line 1, column 1: expected a value, found the end of the file',
    ],
    ['settings.yaml', 'mqtt: {}', 'expected a .json or a .ts file'],
    ['bare.ts', 'export const retention = {};', 'expected a default export, found none'],
    ['number.ts', 'export default 3;', 'expected an object of settings, found a number'],
    ['unknown.json', '{"retension": {}}', /^the whole: .*"retension"/],
  ])('%s', async (name, text, said) => {
    const path = file(name, text);
    const [line = '', ...more] = await linesOf({ CONFIG_FILE: path });
    expect(more).toEqual([]);
    expect(line.slice(0, path.length + 2)).toBe(`${path}: `);
    const rest = line.slice(path.length + 2, -1);
    if (typeof said === 'string') expect(rest).toBe(said);
    else expect(rest).toMatch(said);
  });

  test.each([
    ['https://tiles.example.org/tiles.png', /expected \{z\}, \{x\} and \{y\}, such as https:/],
    ['https://{s}.example.org/{z}/{x}/{y}.png', /expected one host/],
    ['ftp://tiles.example.org/{z}/{x}/{y}.png', /console\.tiles\.url/],
  ])('whose map tiles have no usable address: %s', async (url, said) => {
    const tiles = { url, attribution: 'Maps' };
    const path = file('tiles.json', JSON.stringify({ console: { tiles } }));
    const lines = await linesOf({ CONFIG_FILE: path });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`${path}: console.tiles.url`);
    expect(lines[0]).toMatch(said);
  });

  test('whose map tiles do not say whose they are', async () => {
    const tiles = { url: 'https://tiles.example.org/{z}/{x}/{y}.png', attribution: '' };
    const path = file('tiles.json', JSON.stringify({ console: { tiles } }));
    expect((await linesOf({ CONFIG_FILE: path })).join()).toContain('console.tiles.attribution');
  });

  test('that is missing, or a directory', async () => {
    const missing = join(dir, 'missing.json');
    expect(await linesOf({ CONFIG_FILE: missing })).toEqual([
      `${missing}: the file does not exist.`,
    ]);
    const directory = join(dir, 'directory.ts');
    mkdirSync(directory);
    expect(await linesOf({ CONFIG_FILE: directory })).toEqual([
      `${directory}: expected a file, found a directory.`,
    ]);
  });

  test('with a byte order mark is accepted', async () => {
    const path = file('mark.json', '\uFEFF{"retention": {"eventsDays": 3}}');
    expect((await loadConfig({ CONFIG_FILE: path })).retention.eventsDays).toBe(3);
  });
});

describe.skipIf(!hasOpenssl)('a certificate for MQTT over TLS', () => {
  const one = { certFile: join(dir, 'one.pem'), keyFile: join(dir, 'one.key') };
  const other = { certFile: join(dir, 'other.pem'), keyFile: join(dir, 'other.key') };
  beforeAll(() =>
    Promise.all([makeCertificate('one.example', one), makeCertificate('other.example', other)]),
  );
  const envOf = (certFile: string, keyFile: string) => ({
    MQTTS_PORT: '0',
    TLS_CERT_FILE: certFile,
    TLS_KEY_FILE: keyFile,
  });

  test('with the key of another one', async () => {
    expect(await refusedLine(envOf(one.certFile, other.keyFile))).toBe(
      `TLS_KEY_FILE: ${other.keyFile} is not the key of the certificate in ${one.certFile}.`,
    );
  });

  test('or key that is no certificate or key', async () => {
    const none = file('none.pem', 'none\n');
    const lines = await linesOf(envOf(none, one.certFile));
    expect(lines.map((line) => line.split(' (')[0])).toEqual([
      `TLS_CERT_FILE: ${none} is not a certificate in PEM format`,
      `TLS_KEY_FILE: ${one.certFile} is not a private key in PEM format`,
    ]);
  });
});

describe('ports', () => {
  test('that are taken: one line each, with the variable', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const taken = (name: string) =>
      `${name}: port ${port} of 127.0.0.1 is in use: stop what uses it, or choose another one (0 takes any free one).`;
    const names = ['HTTP_PORT', 'MQTT_PORT', 'METRICS_PORT'];
    const env = Object.fromEntries(names.map((name) => [name, String(port)]));
    expect(await refusedLines(env)).toEqual(names.map(taken));
    other.close();
  });

  test('that two listeners of one process share', async () => {
    expect(await refusedLine({ HTTP_PORT: '18999', MQTT_PORT: '18999' })).toBe(
      'MQTT_PORT: port 18999 is also that of HTTP_PORT: choose another one.',
    );
  });

  test('of an address that this machine does not have', async () => {
    expect(await refusedLine({ HTTP_HOST: '192.0.2.1' })).toMatch(
      /^HTTP_HOST: this machine has no address 192\.0\.2\.1: /,
    );
  });
});

test.each(['https://example.org/iot', 'https://example.org/iot/', 'http://h:1/?a/b/../c/d'])(
  'PUBLIC_URL %s has a path, but this service serves nothing there',
  async (url) => {
    const lines = linesOf({ PUBLIC_URL: url });
    if (url.includes('?')) await expect(lines).rejects.toThrow('taken');
    else expect(await lines).toEqual([expect.stringMatching(/^PUBLIC_URL.*without a path/)]);
  },
);
