import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../journeys/process.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { hasMosquitto } from '../support/mosquitto.ts';
import { findProgram } from '../support/program.ts';
import { blocksOf, readProjectFile, readScriptSteps } from './readme.ts';

const canRun = hasMosquitto && findProgram('curl') !== null;

/** Blocks with placeholders, with commands for the service's own machine, or for metrics, which are off here. */
const isLeftOut = (block: string) => /^URL=|^ss |9464|^curl -N/m.test(block);

/** The steps of the tour that set the variables which other pages use. */
const known = readScriptSteps()
  .filter(({ title }) => ['Is it there?', 'An account', 'A device'].includes(title))
  .map(({ commands }) => commands);

describe.skipIf(!canRun)('the commands of pages that continue from the tour', () => {
  let service: TestService;
  let cwd: string;
  beforeAll(async () => {
    service = await testService();
    cwd = mkdtempSync(join(tmpdir(), 'commands-'));
  });
  afterAll(async () => {
    await service?.close();
    rmSync(cwd, { recursive: true });
  });

  it.each([
    ['docs/troubleshooting.md', 8],
    ['docs/api-keys.md', 2],
    ['docs/bulk.md', 3],
    ['docs/data-in-bulk.md', 3],
  ])('succeed: %s', async (page, least) => {
    const text = readProjectFile(page).replaceAll(/^ +/gm, '');
    const blocks = blocksOf(text, 'sh').filter((block) => !isLeftOut(block));
    expect(blocks.length).toBeGreaterThanOrEqual(least);
    const strict = 'curl() { command curl --fail "$@"; }';
    // The tour names its account by the current second.
    const input = [strict, ...known, ...blocks].join('\n').replace('$(date +%s)', randomUUID());
    const shell = runProgram('sh', ['-eu'], { env: { URL: service.url }, input, cwd });
    const status = await shell.ended();
    expect([shell.stderr(), status], shell.stdout()).toEqual(['', 0]);
  });
});
