import { execFile, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { makeCollectGarbage } from '../../src/process/v8.ts';

const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });

// V8 reports no error if a program sets a flag that it does not know.
test.each([
  '--allocation-site-pretenuring',
  '--heap-growing-percent',
  '--max-semi-space-size',
  '--expose-gc',
])('%s is a flag', (flag) => {
  expect(options.split('\n').some((line) => line.startsWith(`  ${flag} (`))).toBe(true);
});

test('all garbage is collected on request', () => {
  const collect = makeCollectGarbage();
  const garbage = new WeakRef({});
  return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    collect();
    expect(garbage.deref()).toBeUndefined();
  });
});

test.each([
  { flags: ['--max-old-space-size=512'], megabytes: 512 },
  { flags: ['--max-old-space-size=512', '--max-semi-space-size=32'], megabytes: 512 },
  { flags: ['--max-old-space-size=2048', '--max-semi-space-size=16'], megabytes: 2_048 },
])('$flags sets the heap limit', async ({ flags, megabytes }) => {
  const file = fileURLToPath(new URL('../../src/process/v8.ts', import.meta.url));
  const script = `import(${JSON.stringify(file)}).then((v8) => console.log(v8.findHeapLimit() / 2 ** 20))`;
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '-e', script]);
  expect(Number(stdout)).toBe(megabytes);
});
