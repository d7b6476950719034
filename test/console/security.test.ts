import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { TestDevice } from '../journeys/device.ts';
import {
  browserPath,
  checkPage,
  cookiesOf,
  findWide,
  openBrowser,
  openPage,
  takePicture,
} from './browser.ts';
import type { Look, SessionCookies } from './browser.ts';
import { callAs } from './filled.ts';
import { connectHostile } from './hostile.ts';
import { findInjected } from './injected.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

describe.skipIf(browserPath === null)('protection of the console', () => {
  let service: TestService;
  let browser: Browser;
  let device: TestDevice;
  let cookies: SessionCookies;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    device = await connectHostile(callAs(service.url, await makeAccount(service.url)));
    cookies = await cookiesOf(service.url, person);
  });
  afterAll(async () => {
    await browser?.close();
    await device?.end();
    await service?.close();
  });

  const open = async (look: Look, path = '') => {
    const watched = await openPage(browser, look, {
      cookies: await cookiesOf(service.url, person),
    });
    onTestFinished(() => watched.page.context().close());
    await watched.page.goto(`${service.url}/console/${path}`);
    await watched.page.locator('.shell h1').waitFor();
    return watched;
  };

  test('the pages behind links in mails look like the console, under a policy without exceptions', async () => {
    const watched = await openPage(browser, 'phone', { locale: 'de-DE', colorScheme: 'dark' });
    const { page } = watched;
    onTestFinished(() => page.context().close());
    const answer = await page.goto(`${service.url}/reset?token=old`);
    expect(await answer?.headerValue('content-security-policy')).not.toContain('unsafe');
    await page.getByRole('heading', { name: 'Dieser Link ist ungültig' }).waitFor();
    await checkPage(watched, 'mail-link-phone-dark');
    expect(await colorOf(page, 'main')).toBe('rgb(24, 28, 33)');
  });

  test.each(['light', 'phone'] as const)('a hostile device is shown as text, %s', async (look) => {
    const { page, faults } = await openPage(browser, look, { cookies });
    onTestFinished(() => page.context().close());
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    page.on('dialog', (dialog) => {
      faults.push(`A dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    const own = `devices/${device.uuid}`;
    await page.goto(`${service.url}/console/${own}`);
    await page.locator('.tabs a').first().waitFor();
    const tabs = await hrefsOf(page, '.tabs a');
    const paths = ['/console/', '/console/alarms', ...tabs];
    const wrong: string[] = [];
    for (const path of paths) {
      await page.goto(service.url + path);
      await page.getByText('onerror=alert(1)').filter({ visible: true }).first().waitFor();
      await waitForAnswers(page);
      await takePicture(page, `hostile-${path.replaceAll(/\W+/g, '-')}-${look}`);
      const found = [...(await findInjected(page)), ...(await findWide(page))];
      wrong.push(...found.map((one) => `${path}: ${one}`));
    }
    expect(wrong).toEqual([]);
    expect(faults).toEqual([]);
    expect(asked.filter((url) => !url.startsWith(service.url) && !url.startsWith('data:'))).toEqual(
      [],
    );
  });

  test('the policy refuses what it should, and these tests notice it', async () => {
    const { page, faults } = await open('light');
    const run = (script: string) =>
      page.evaluate(`(async () => { ${script} })()`).then(
        () => 'done',
        (error: Error) => error.message,
      );
    expect(await run(`document.body.innerHTML = '<b>x</b>'`)).toContain('TrustedHTML');
    expect(await run(`trustedTypes.createPolicy('mine', {})`)).toContain('disallowed');
    await run(`const s = document.createElement('div'); s.setAttribute('style', 'color: red');
      document.body.append(s)`);
    await run(`const i = new Image(); i.src = 'http://127.0.0.1:1/x.png'; document.body.append(i)`);
    await run(`await fetch('http://127.0.0.1:1/')`);
    await run(
      `const f = document.createElement('iframe'); f.src = '/console/'; document.body.append(f)`,
    );
    for (const directive of ['TrustedHTML', 'style-src', 'img-src', 'connect-src'])
      expect([directive, faults.some((fault) => fault.includes(directive))]).toEqual([
        directive,
        true,
      ]);
    await expect.poll(() => faults.some((fault) => fault.includes('default-src'))).toBe(true);
  });

  test('no token is in an answer, in a storage, or where a script can read it', async () => {
    const { page, faults } = await openPage(browser, 'light');
    onTestFinished(() => page.context().close());
    const answers: string[] = [];
    page.on('response', async (response) => {
      if (!response.url().includes('/stream')) answers.push(await response.text().catch(() => ''));
    });
    await page.goto(`${service.url}/console/`);
    await page.locator('input[name=email]').fill(person.email);
    await page.locator('input[name=password]').fill(person.password);
    await page.locator('button[type=submit]').click();
    await page.locator('.fleet tbody tr').first().waitFor();
    const session = (await page.context().cookies()).find(({ name }) =>
      name.startsWith('sensorium-'),
    );
    expect(session).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
    expect(session?.value.length).toBeGreaterThan(20);
    const kept = await page.evaluate(`(async () => JSON.stringify([
      document.cookie, { ...localStorage }, { ...sessionStorage }, await indexedDB.databases(),
      self.caches ? await caches.keys() : [],
      (await navigator.serviceWorker?.getRegistrations())?.length ?? 0, name, history.state]))()`);
    expect(kept).toBe('["",{},{},[],[],0,"",null]');
    expect(answers.length).toBeGreaterThan(3);
    expect(answers.filter((text) => text.includes(session?.value ?? ''))).toEqual([]);
    expect(await page.content()).not.toContain(session?.value);
    expect(faults).toEqual([]);
  });

  test('nothing of an account stays in a cache; files with a hash in their name may', async () => {
    const { page } = await openPage(browser, 'light', { cookies });
    onTestFinished(() => page.context().close());
    const said = new Map<string, string>();
    page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (!pathname.startsWith('/')) return;
      said.set(pathname, response.headers()['cache-control'] ?? 'nothing');
    });
    for (const path of ['', 'alarms', `devices/${device.uuid}`]) {
      await page.goto(`${service.url}/console/${path}`);
      await page.locator('.shell h1').waitFor();
      await waitForAnswers(page);
    }
    expect(said.size).toBeGreaterThan(8);
    for (const [path, cacheControl] of said)
      expect([path, cacheControl]).toEqual([
        path,
        path.startsWith('/console/assets/')
          ? 'public, max-age=31536000, immutable'
          : expect.stringContaining('no-store'),
      ]);
  });

  test('signing out applies to every tab, and Back shows nothing', async () => {
    const { page } = await open('light', 'alarms');
    const other = await page.context().newPage();
    await other.goto(`${service.url}/console/devices/${device.uuid}`);
    await other.locator('.shell h1').waitFor();
    const cookie = (await page.context().cookies())[0];
    await page.locator('.foot summary').click();
    expect(await page.locator('.foot-menu a[href="/docs"]').isVisible()).toBe(true);
    await page.getByRole('button', { name: 'Sign out' }).click();
    for (const each of [page, other]) {
      await each.getByLabel('E-mail address').waitFor();
      expect(await each.locator('.shell').count()).toBe(0);
      expect(await each.title()).toBe('Sign in · Sensorium');
    }
    await other.goBack().catch(() => null);
    await other.goForward().catch(() => null);
    await other.getByLabel('E-mail address').waitFor();
    // A copy of the cookie is useless.
    const headers = { Cookie: `${cookie?.name}=${cookie?.value}` };
    expect((await fetch(`${service.url}/v2/devices`, { headers })).status).toBe(401);
  });

  test('signing in as somebody else applies to every tab', async () => {
    const somebody = { email: 'else@example.com', password: 'correct horse' };
    await makeAccount(service.url, somebody);
    const { page } = await open('light');
    const other = await page.context().newPage();
    await other.goto(`${service.url}/console/`);
    await other.getByText(person.email).waitFor();
    await page.context().clearCookies();
    await page.reload();
    await page.locator('input[name=email]').fill(somebody.email);
    await page.locator('input[name=password]').fill(somebody.password);
    await page.locator('button[type=submit]').click();
    for (const each of [page, other]) await each.getByText(somebody.email).waitFor();
    await other.getByText('No devices yet').waitFor();
  });
});

/** Waits until nothing is shown as loading. */
async function waitForAnswers(page: Page): Promise<void> {
  await expect.poll(() => page.locator('.skeleton').count()).toBe(0);
}

const hrefsOf = (page: Page, selector: string): Promise<string[]> =>
  page.evaluate(
    `[...document.querySelectorAll('${selector}')].map((each) => each.getAttribute('href'))`,
  );

const colorOf = (page: Page, selector: string) =>
  page.evaluate(`getComputedStyle(document.querySelector('${selector}')).backgroundColor`);
