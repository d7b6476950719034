import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  browserPath,
  cookiesOf,
  findFlaws,
  findWide,
  looks,
  openBrowser,
  openPage,
  pageLoaded,
  takePicture,
  watch,
  type Look,
  type SessionCookies,
  type Watched,
} from './browser.ts';
import { fill, person, type Filled } from './filled.ts';
import { findHardCoded } from './hard-coded.ts';
import { pageCases, type PageCase } from './page-list.ts';
import { speakPseudo } from './pseudo.ts';
import { consoleService, makeAccount, type TestService } from './service.ts';
import { findSmallTargets } from './targets.ts';

const newcomer = { email: 'grace@example.com', password: 'correct horse' };

// Only if the machine has Chromium; if not, the last line of the run says so.
describe.skipIf(browserPath === null)('every page', () => {
  let service: TestService;
  let browser: Browser;
  let filled: Filled;
  let cookies: Record<PageCase['of'], SessionCookies>;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    filled = await fill(service);
    await makeAccount(service.url, newcomer);
    cookies = {
      filled: await cookiesOf(service.url, person),
      empty: await cookiesOf(service.url, newcomer),
      nobody: [],
    };
  });
  afterAll(async () => {
    await browser?.close();
    await filled?.close();
    await service?.close();
  });

  /** Returns what is wrong with a page. */
  type Visit = (watched: Watched, name: string) => Promise<readonly string[]>;

  /** Opens each page as its account, waits until it has loaded, and lists what is wrong. */
  async function visit(look: Look, visitPage: Visit, before?: (page: Page) => Promise<void>) {
    const wrong: string[] = [];
    for (const [of, cases] of Map.groupBy(pageCases, (each) => each.of)) {
      const { page } = await openPage(browser, look, { cookies: cookies[of] });
      await before?.(page);
      for (const each of cases) {
        const faults = watch(page);
        await page.goto(`${service.url}/console/${each.path(filled.uuids)}`);
        await page.locator(each.ready).first().waitFor();
        await pageLoaded(page);
        await each.act?.(page);
        const found = await visitPage({ page, faults }, each.name);
        wrong.push(...found.map((one) => `${each.name}: ${one}`));
      }
      await page.context().close();
    }
    expect(wrong).toEqual([]);
  }

  test('has no findings; also at 200 and 400 %, and in forced colours', () =>
    visit('light', async ({ page, faults }, name) => {
      await takePicture(page, `${name}-light`);
      const found = [...(await findFlaws(page))];
      // What is left of a window of 1280 px at 200 % and at 400 %.
      for (const viewport of [
        { width: 640, height: 400 },
        { width: 320, height: 640 },
      ]) {
        await page.setViewportSize(viewport);
        await takePicture(page, `${name}-${viewport.width}`);
        found.push(...(await findWide(page)).map((one) => `${viewport.width} px: ${one}`));
      }
      await page.setViewportSize(looks.light.viewport);
      await page.emulateMedia({ forcedColors: 'active' });
      await takePicture(page, `${name}-forced`);
      found.push(...(await findUnmarked(page)));
      await page.emulateMedia({ forcedColors: null });
      return [...found, ...faults];
    }));

  test('has no findings in dark mode', () =>
    visit('dark', async ({ page, faults }, name) => {
      await takePicture(page, `${name}-dark`);
      return [...(await findFlaws(page)), ...faults];
    }));

  test('has no findings on a phone, and targets that are large enough for a finger', () =>
    visit('phone', async ({ page, faults }, name) => {
      await takePicture(page, `${name}-phone`);
      return [...(await findFlaws(page)), ...(await findSmallTargets(page)), ...faults];
    }));

  test('has no text outside the lists of texts, and room for longer ones', () =>
    visit(
      'light',
      async ({ page, faults }, name) => {
        await takePicture(page, `${name}-pseudo`);
        return [...(await findHardCoded(page)), ...(await findWide(page)), ...faults];
      },
      (page) => speakPseudo(page.context()),
    ));
});

/** Chosen items that look no different from those beside them. */
const findUnmarked = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const marks = '[aria-current]:is(.place, .chip, .tab), [aria-pressed="true"], .choice input:checked + span';
    const look = (each) => {
      const { backgroundColor, borderBottomColor, outlineStyle } = getComputedStyle(each);
      return [backgroundColor, borderBottomColor, outlineStyle].join();
    };
    return [...document.querySelectorAll(marks)]
      .filter((each) => {
        const others = [...(each.closest('nav, fieldset, [role=group]') ?? document).querySelectorAll(each.localName)];
        const other = others.find((one) => one.className === each.className && !one.matches(marks));
        return other && look(other) === look(each);
      })
      .map((each) => each.outerHTML.slice(0, 120));
  })()`);
