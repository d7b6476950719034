import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { pageRoutes, startConsoleBuild } from '../../src/console/pages.ts';
import type { Streamed } from '../../src/http/answer.ts';
import { testService } from '../journeys/service.ts';
import { consoleService } from './service.ts';

const log = pino({ level: 'silent' });

async function tempDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'console-test-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** The first answer that is not a waiting page. */
async function pageOf(url: string): Promise<Response> {
  const ask = () => fetch(`${url}/console/`);
  await expect.poll(async () => (await ask()).status, { interval: 100 }).toBe(200);
  return ask();
}

test('the console is served with a policy of its own, its files by hash and compressed', async () => {
  const service = await consoleService();
  onTestFinished(() => service.close());
  for (const path of ['/', '/console']) {
    const { status, headers } = await fetch(service.url + path, { redirect: 'manual' });
    expect([path, status, headers.get('location')]).toEqual([path, 302, '/console/']);
  }
  const page = await pageOf(service.url);
  expect(page.headers.get('cache-control')).toBe('no-store');
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("require-trusted-types-for 'script'");
  expect(policy).not.toContain('unsafe');
  const html = await page.text();
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
  const script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(html)?.[1] ?? '';
  for (const encoding of ['br', 'gzip']) {
    const headers = { 'Accept-Encoding': encoding };
    const asset = await fetch(service.url + script, { headers });
    expect(asset.headers.get('content-encoding')).toBe(encoding);
    expect(asset.headers.get('cache-control')).toContain('immutable');
    expect(asset.headers.get('content-type')).toMatch(/^text\/javascript/);
  }
  for (const path of ['devices/x', 'alarms', 'add'])
    expect(await (await fetch(`${service.url}/console/${path}`)).text()).toBe(html);
  for (const path of ['assets/none.js', 'assets/..%2fmanifest.json', 'assets/manifest.json'])
    expect((await fetch(`${service.url}/console/${path}`)).status).toBe(404);
});

test('if it is turned off, nothing of it is served', async () => {
  const service = await testService();
  onTestFinished(() => service.close());
  for (const path of ['/', '/console', '/console/', '/console/session', '/console/alarms'])
    expect((await fetch(service.url + path)).status).toBe(404);
});

test('a build is stored by its hash, and found again', async () => {
  const cacheDir = await tempDir();
  const prebuilt = join(import.meta.dirname, '../../node_modules/.cache/console');
  const build = startConsoleBuild({ cacheDir, log });
  onTestFinished(() => build.close());
  await expect.poll(() => build.find().state).toBe('ready');
  const built = build.find();
  if (built.state !== 'ready') throw new Error('It was built a moment ago.');
  // From the same sources as before the tests, so nothing was built again.
  // Builds of sources that were changed since may lie beside it.
  expect(await readdir(prebuilt)).toContain(built.dir.split('/').at(-1));
  expect(await readdir(cacheDir)).toEqual([]);
});

test('a failed build is logged once the service has started, and not before', async () => {
  const lines: object[] = [];
  const build = startConsoleBuild({
    // No program can get such an argument.
    cacheDir: '\0',
    log: { error: (line) => void lines.push(line) },
  });
  onTestFinished(() => build.close());
  await expect.poll(() => build.find().state).toBe('failed');
  expect(lines).toEqual([]);
  build.tell();
  build.tell();
  expect(lines).toMatchObject([{ event: 'console.failed' }]);
});

test('after a failed build the page says so, and where to read on', async () => {
  const answer = async (built: ReturnType<Parameters<typeof pageRoutes>[0]>) => {
    const headers: Record<string, string> = {};
    const route = pageRoutes(() => built, null).find(({ path }) => path === '/console/');
    if (!route) throw new Error('There is no route of the page.');
    const request = {
      header: () => '',
      setHeader: (name: string, value: string) => (headers[name] = value),
    };
    const raw = { params: {}, query: {}, body: undefined, account: null, request };
    const { status, source } = (await route.call(raw as never)) as Streamed;
    let text = '';
    for await (const chunk of source as AsyncIterable<string>) text += chunk;
    return { status, text, headers };
  };
  expect(await answer({ state: 'failed' })).toMatchObject({
    status: 503,
    text: expect.stringContaining('/docs'),
  });
  expect(await answer({ state: 'building' })).toMatchObject({
    status: 503,
    headers: { Refresh: '1' },
  });
});
