import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { chromium, type Browser, type Page } from 'playwright-core';
import { expect } from 'vitest';

/** Debian's; null where the machine has none, and the tests in it are skipped. */
export const browserPath = existsSync('/usr/bin/chromium') ? '/usr/bin/chromium' : null;

export const looks = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, hasTouch: true },
} as const;
export type Look = keyof typeof looks;

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox', '--disable-gpu'] });

export type Watched = {
  page: Page;
  /** What the page was refused by its policy, threw, or could not load. */
  faults: string[];
};

/** A page that nobody has opened yet; `german`: of a browser that speaks German. */
export async function openPage(
  browser: Browser,
  look: Look,
  { locale = 'en-GB' } = {},
): Promise<Watched> {
  const context = await browser.newContext({
    ...looks[look],
    locale,
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`${error.name}: ${error.message}`));
  page.on('console', (message) => {
    // Chromium writes each answer of 4xx there; those that a test means to get are looked at by itself.
    if (message.type() !== 'error' || /status of 4\d\d/.test(message.text())) return;
    faults.push(message.text());
  });
  return { page, faults };
}

let axe: string | undefined;

/** What axe finds, in a line each; and whether the page is wider than its window. */
export async function findFlaws(page: Page): Promise<string[]> {
  axe ??= await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // By the debugger, which the page's policy does not hold.
  const found = (await page.evaluate(`${axe}; axe.run(document).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).join(' | ')))`)) as string[];
  const wide = await page.evaluate(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  );
  return wide === true ? [...found, 'The page scrolls sideways.'] : found;
}

/** Where pictures go; none are made without. */
const pictures = process.env['CONSOLE_SCREENSHOTS'] ?? '';

/** A page as it should be: nothing refused, nothing that axe finds, nothing beyond the edge. */
export async function checkPage({ page, faults }: Watched, name: string): Promise<void> {
  if (pictures !== '') await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  expect([name, await findFlaws(page), faults]).toEqual([name, [], []]);
}

export async function signIn(
  page: Page,
  url: string,
  { email, password }: { email: string; password: string },
): Promise<void> {
  await page.goto(`${url}/console/`);
  await page.locator('input[name=email]').fill(email);
  await page.locator('input[name=password]').fill(password);
  await page.locator('button[type=submit]').click();
  await page.locator('.shell').waitFor();
}
