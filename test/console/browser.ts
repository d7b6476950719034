import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, BrowserContextOptions, Cookie, Page } from 'playwright-core';
import { expect } from 'vitest';

export { chromiumPath as browserPath, startChromium as openBrowser } from '../support/chromium.ts';

export const looks = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, hasTouch: true },
} as const;
export type Look = keyof typeof looks;

export type Watched = {
  page: Page;
  /** What the page's policy refused, what it threw, and what it could not load. */
  faults: string[];
};

/** A new page; `cookies`: of a session (`cookiesOf`). */
export async function openPage(
  browser: Browser,
  look: Look,
  { cookies = [], ...options }: { cookies?: SessionCookies } & BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({
    ...looks[look],
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
    ...options,
  });
  await context.addCookies(cookies);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  return { page, faults: watch(page) };
}

/** Records what goes wrong in a page from now on. */
export function watch(page: Page): string[] {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`${error.name}: ${error.message}`));
  page.on('console', (message) => {
    // Chromium logs every 4xx answer there; tests that expect one check it themselves.
    if (message.type() !== 'error' || /status of 4\d\d/.test(message.text())) return;
    const { url } = message.location();
    faults.push(url ? `${message.text()} ${url}` : message.text());
  });
  return faults;
}

let axe: string | undefined;

/** The findings of axe, one line each; and whether the page is wider than its window. */
export async function findFlaws(page: Page): Promise<string[]> {
  axe ??= await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // By the debugger, which the page's policy does not restrict; only once for each page.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(`${axe}; undefined`);
  const found =
    (await page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).join(' | ')))`)) as string[];
  return [...found, ...(await findWide(page))];
}

/** Waits until everything has loaded: before that there are grey lines, and charts without a line. */
export async function pageLoaded(page: Page): Promise<void> {
  const loading = page.locator('.skeleton, .chart-box:not(:has(canvas))');
  await expect.poll(() => loading.count(), { timeout: 60_000 }).toBe(0);
}

/** Whether the page scrolls sideways, and which of its controls are outside it. */
export const findWide = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const scrolls = (each) => each && (/auto|scroll/.test(getComputedStyle(each).overflowX) || scrolls(each.parentElement));
    const beyond = [...document.querySelectorAll('a, button, input, select, summary, h1, h2')]
      .filter((each) => each.checkVisibility({ visibilityProperty: true }))
      .filter((each) => each.getBoundingClientRect().right > clientWidth + 1 && !scrolls(each.parentElement))
      .map((each) => 'Beyond the edge: ' + each.outerHTML.slice(0, 120));
    const wide = scrollWidth > clientWidth
      ? [...document.querySelectorAll('main *')].filter((each) => each.getBoundingClientRect().right > clientWidth + 1 && !scrolls(each)).slice(0, 2).map((each) => each.outerHTML.slice(0, 80))
      : [];
    return [...(scrollWidth > clientWidth ? ['The page scrolls sideways: ' + wide.join(' | ')] : []), ...beyond];
  })()`);

/** Where pictures are written; if it is not set, none are made. */
const pictures = process.env['CONSOLE_SCREENSHOTS'] ?? '';

/** Expects a page without faults: nothing refused, no findings of axe, nothing outside the window. */
export async function checkPage({ page, faults }: Watched, name: string): Promise<void> {
  await takePicture(page, name);
  expect([name, await findFlaws(page), faults]).toEqual([name, [], []]);
}

/** A picture of the whole page, if pictures are wanted. */
export async function takePicture(page: Page, name: string): Promise<void> {
  if (pictures === '') return;
  // Moves the pointer away from anything that reacts to it.
  await page.mouse.move(0, 0);
  const viewport = page.viewportSize() ?? looks.light.viewport;
  // Otherwise bars that are fixed to the lower edge would lie across the middle.
  const height = (await page.evaluate('document.documentElement.scrollHeight')) as number;
  await page.setViewportSize({ ...viewport, height: Math.max(height, viewport.height) });
  await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  await page.setViewportSize(viewport);
}

type Credentials = { email: string; password: string };
export type SessionCookies = Pick<Cookie, 'name' | 'value' | 'domain' | 'path'>[];

/** The cookie of a new session, for pages that are not about signing in. */
export async function cookiesOf(url: string, credentials: Credentials): Promise<SessionCookies> {
  const response = await fetch(`${url}/console/session`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(credentials),
  });
  const [pair = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
  const [name = '', value = ''] = pair.split('=', 2);
  return [{ name, value, domain: new URL(url).hostname, path: '/' }];
}

/**
 * A page of somebody who is already signed in, for tests that are not about signing in: that would load another page,
 * and a form.
 */
export async function openSignedIn(
  browser: Browser,
  look: Look,
  { url, credentials, path = '' }: { url: string; credentials: Credentials; path?: string },
): Promise<Watched> {
  const watched = await openPage(browser, look, { cookies: await cookiesOf(url, credentials) });
  await watched.page.goto(`${url}/console/${path}`);
  return watched;
}

export async function signIn(
  page: Page,
  url: string,
  { email, password }: Credentials,
): Promise<void> {
  await page.goto(`${url}/console/`);
  await page.locator('input[name=email]').fill(email);
  await page.locator('input[name=password]').fill(password);
  await page.locator('button[type=submit]').click();
  await page.locator('.shell').waitFor();
}
