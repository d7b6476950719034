import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { openTestDatabase } from '../support/database.ts';
import { long, short } from '../support/share.ts';
import { browserPath, openBrowser, openSignedIn, type Look, type Watched } from './browser.ts';
import { carrier, fillColdChain, findThree } from './cold-chain.ts';
import { fill, person, type Filled } from './filled.ts';
import { button, checkLooks, muteTwo, names, rows, search } from './fleet-looks.ts';
import { knock, seeItComeBack } from './comes-back.ts';
import { addDevices } from './many.ts';
import { consoleService, type TestService } from './service.ts';

const many = 10_000;

describe.skipIf(browserPath === null)('the fleet', () => {
  let service: TestService;
  let browser: Browser;
  let filled: Filled;
  let db: Database;
  /** Signed in; most tests use the same window. */
  let light: Watched;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    filled = await fill(service);
    db = openTestDatabase(service.databaseUrl);
    const { rows: there } = await db.query('select from device');
    await addDevices(db, { email: person.email, count: many - there.length, onlineEvery: 10 });
    light = await open('light');
  });
  afterAll(async () => {
    await browser?.close();
    await filled?.close();
    await db?.close();
    await service?.close();
  });

  const open = async (look: Look): Promise<Watched> => {
    const watched = await openSignedIn(browser, look, { url: service.url, credentials: person });
    await rows(watched.page).nth(49).waitFor();
    return watched;
  };
  const again = async (): Promise<Watched> => {
    await light.page.goto(`${service.url}/console/`);
    await rows(light.page).nth(49).waitFor();
    // Each test answers for what goes wrong in it.
    light.faults.length = 0;
    return light;
  };
  short('of 10,000 devices appears soon, a page at a time, and finds one', async () => {
    const { page, faults } = await again();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    const timed = async (work: () => Promise<unknown>) => {
      const startedMs = performance.now();
      await work();
      return Math.round(performance.now() - startedMs);
    };
    const openMs = await timed(async () => {
      await page.goto(`${service.url}/console/`);
      await rows(page).nth(49).waitFor();
      await page.getByRole('link', { name: /^All 10,000/ }).waitFor();
    });
    const findMs = await timed(async () => {
      await page.getByRole('searchbox').pressSequentially('box 09876');
      await expect.poll(() => names(page), { interval: 20 }).toEqual(['Box 09876']);
    });
    const filterMs = await timed(async () => {
      await page.goto(`${service.url}/console/?online=true&sort=-lastSeenTs`);
      await rows(page).nth(49).waitFor();
    });
    console.log(`10,000 devices: open ${openMs} ms, find ${findMs} ms, filter ${filterMs} ms.`);
    // A second on an idle machine.
    expect(Math.max(openMs, findMs, filterMs)).toBeLessThan(10_000);
    const lists = asked
      .map((url) => new URL(url))
      .filter(({ pathname }) => pathname === '/v2/devices');
    expect(new Set(lists.map(({ searchParams }) => searchParams.get('limit')))).toEqual(
      new Set(['50']),
    );
    expect(faults).toEqual([]);
  });

  long('is searched while typing: earlier requests are dropped, focus and list stay', async () => {
    const { page, faults } = await again();
    const dropped: string[] = [];
    page.on('requestfailed', (request) => dropped.push(request.url()));
    const { promise: isHeld, resolve: onHeld } = Promise.withResolvers<void>();
    await page.route(/search=box\+0&/, () => onHeld());
    await page.getByRole('searchbox').pressSequentially('box 0');
    await isHeld;
    // The previous list stays during a request.
    expect(await rows(page).count()).toBe(50);
    await page.getByRole('searchbox').pressSequentially('7777');
    await expect.poll(() => names(page)).toEqual(['Box 07777']);
    expect(dropped.some((url) => url.includes('search=box+0&'))).toBe(true);
    const focused = await page.evaluate('document.activeElement.type');
    expect(focused).toBe('search');
    await page.goBack();
    await rows(page).nth(49).waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('');
    await page.unrouteAll();
    expect(faults).toEqual([]);
  });

  short('keeps filters, sorting and page in the URL, and the selection through Back', async () => {
    const { page, faults } = await again();
    await page.getByRole('combobox', { name: 'Label' }).selectOption('cold chain');
    await page.getByRole('link', { name: /^Not connected/ }).click();
    await button(page, 'Last seen');
    await page.getByText(/^1 to 50 of 1,2\d\d$/).waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByText(/^51 to 100 of/).waitFor();
    const { searchParams } = new URL(page.url());
    expect(Object.fromEntries(searchParams)).toMatchObject({
      label: 'cold chain',
      presence: 'offline',
      sort: '-lastSeenTs',
    });
    const second = await names(page);
    expect(second).toHaveLength(50);
    await page.getByLabel(`Select ${second[0]}`).check();
    await page.getByRole('link', { name: second[0] ?? '', exact: true }).click();
    await page.getByRole('heading', { name: second[0] ?? '' }).waitFor();
    await page.goBack();
    await page.getByText('1 selected').waitFor();
    expect(await page.getByLabel(`Select ${second[0]}`).isChecked()).toBe(true);
    await page.reload();
    await expect.poll(() => names(page)).toEqual(second);
    await page.goBack();
    await page.getByText(/^1 to 50 of/).waitFor();
    expect(faults).toEqual([]);
  });

  short('acts on all matching devices: label, undo, mute; and says what failed', async () => {
    const { page, faults } = await again();
    await db.query(
      `update device set labels = array(select 'label ' || n from generate_series(1, 20) n)
        where name = 'Box 00123'`,
    );
    await search(page, 'Box 001');
    await page.getByText('1 to 50 of 100').waitFor();
    await page.getByLabel('Select this page').check();
    await button(page, 'Select all 100 matching devices');
    await page.getByText('All 100 matching devices selected').waitFor();
    await button(page, 'Add label');
    await page.getByRole('dialog').getByText('“Box 001”').waitFor();
    await page.getByRole('dialog').getByRole('combobox').fill('ramp');
    await page.getByRole('dialog').getByRole('button', { name: 'Add the label' }).click();
    await page.getByText('Label “ramp” added: 99 devices').waitFor();
    await page.getByText('1 device failed').click();
    await page.getByText('The device would have more than 20 labels.').waitFor();
    await page.locator('.fleet-labels .label', { hasText: 'ramp' }).nth(48).waitFor();
    await button(page, 'Undo');
    await page.getByText('Label “ramp” removed: 99 devices').waitFor();
    await expect.poll(() => page.locator('.fleet-labels').getByText('ramp').count()).toBe(0);
    await button(page, 'Dismiss');

    await muteTwo(page, db);
    await button(page, 'Dismiss');
    expect(faults).toEqual([]);
  });

  long('removes once a name or number was typed; a job outlives its tab', async () => {
    const page = await light.page.context().newPage();
    await page.goto(`${service.url}/console/`);
    await search(page, 'Box 0555');
    await page.getByText('1 to 10 of 10').waitFor();
    const removed = await db.query<{ uuid: string }>(
      `select uuid from device where name = 'Box 05550'`,
    );
    await page.getByLabel('Select Box 05550').check();
    await button(page, 'Remove …');
    const dialog = page.getByRole('dialog');
    const remove = dialog.getByRole('button', { name: 'Remove permanently' });
    expect(await remove.isDisabled()).toBe(true);
    await dialog.getByLabel('Type “Box 05550” to confirm').fill('Box 05550');
    await remove.click();
    await page.getByText('1 to 9 of 9').waitFor();
    await button(page, 'Dismiss');
    await knock(db, removed.rows[0]?.uuid);
    await page.getByLabel('Select this page').check();
    await db.transaction(async (tx) => {
      // Blocks jobs meanwhile, as if another process were running one.
      await tx.query('select pg_advisory_xact_lock(7212)');
      await button(page, 'Remove …');
      await dialog.getByLabel('Type “9” to confirm').fill('9');
      await remove.click();
      await page.getByText('Removing: 9 devices').waitFor();
      await page.getByText('0 of 9').waitFor();
      await page.close();
    });
    const { page: later, faults } = await again();
    await later.getByText('Removed: 9 devices').waitFor();
    await later.getByRole('button', { name: 'Dismiss' }).waitFor();
    await search(later, 'Box 0555');
    await later.getByText('No matching devices').waitFor();
    await button(later, 'Dismiss');
    await later.getByText('1 removed device keeps trying to log in').click();
    await later.getByText('Box 05550').waitFor();
    expect(faults).toEqual([]);
  });

  short('and the page of a device show who connects and leaves, without polling', () =>
    seeItComeBack(service, browser),
  );

  long('a job is stopped; the service says why it does not accept a third one', async () => {
    const { page, faults } = await again();
    await db.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock(7212)');
      for (const box of ['Box 00201', 'Box 00202', 'Box 00203']) {
        await search(page, box);
        await page.getByText('1 to 1 of 1').waitFor();
        await page.getByLabel(`Select ${box}`).check();
        await button(page, 'Unmute');
        if (box !== 'Box 00203') await page.locator('.selection').waitFor({ state: 'hidden' });
      }
      await page.locator('.selection .problem').waitFor();
      await button(page, 'Clear');
      await page.getByRole('button', { name: 'Stop' }).first().click();
      await page.getByText('(stopped)').waitFor();
    });
    await expect.poll(() => page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  long('of 500 boxes shows the warm, the silent and the refused one', async () => {
    const boxes = await fillColdChain(service, db);
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', { url, credentials: carrier });
    await findThree(watched);
    await watched.page.context().close();
    await boxes.close();
  });

  const looks: Look[] = ['light', 'dark', 'phone'];
  long.each(looks)('looks as it should, %s', async (look) => {
    const watched = await open(look);
    await checkLooks(watched, look);
    await watched.page.context().close();
  });
});
