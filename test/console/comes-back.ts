import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { openPage, signIn } from './browser.ts';
import { box } from './filled-data.ts';
import { makeAccount, person, type TestService } from './service.ts';

/** A device is added, connects, sends nothing and leaves, while the page does not poll: the page shows it. */
export async function seeItComeBack({ url }: TestService, browser: Browser): Promise<void> {
  const newcomer = { ...person, email: `newcomer-${Date.now()}@example.com` };
  const token = await makeAccount(url, newcomer);
  const { page } = await openPage(browser, 'light');
  await holdPolls(page);
  await countHeard(page);
  await signIn(page, url, newcomer);
  await page.goto(`${url}/console/`);
  await page.getByText('No devices yet').waitFor();
  await expect.poll(() => heard(page, 'open')).toBeGreaterThan(0);
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify(box('Cellar', ''));
  const added = await fetch(`${url}/v2/devices`, { method: 'POST', headers, body });
  const registration = (await added.json()) as Registration;
  await page.getByText('Never connected').waitFor();
  await comeAndLeave(page, registration, '.fleet-state');
  await page
    .locator('.chips')
    .getByRole('link', { name: 'Not connected 1', exact: true })
    .waitFor();
  await page.goto(`${url}/console/devices/${registration.deviceAuthUuid}`);
  await page.locator('.device-seen').getByText('Offline').waitFor();
  await comeAndLeave(page, registration, '.device-seen');
  await page.context().close();
}

async function comeAndLeave(page: Page, device: Registration, place: string): Promise<void> {
  await expect.poll(() => heard(page, 'open')).toBeGreaterThan(0);
  const here = await connectDevice(device);
  await page
    .locator(place)
    .getByText(/^Online/)
    .waitFor();
  await here.end();
  await page
    .locator(place)
    .getByText(/^Offline/)
    .waitFor();
  // If the stream was reopened meanwhile, it says to ask again.
  const told = (await heard(page, 'device')) + (await heard(page, 'devices'));
  expect(told).toBeGreaterThan(0);
}

/** Stores a login attempt of a removed device. */
export async function knock(db: Database, uuid: string | undefined): Promise<void> {
  await db.query(
    `insert into refused_login
       (uuid, reason, address, account_id, count, first_at, last_at, is_open)
     select uuid, 'device-removed', '192.0.2.7', account_id, 3, now(), now(), true
       from removed_uuid where uuid = $1`,
    [uuid],
  );
}

/** Turns off the page's polling. Call it before opening the page. */
const holdPolls = (page: Page): Promise<unknown> =>
  page.addInitScript(`(() => {
    const own = window.setInterval;
    window.setInterval = (run, ms, ...given) => (ms < 1_000 ? own(run, ms, ...given) : 0);
  })()`);

/** Makes the page count what its streams send. Call it before opening the page. */
const countHeard = (page: Page): Promise<unknown> =>
  page.addInitScript(`(() => {
    const counts = (window.heard = {});
    const Own = window.EventSource;
    window.EventSource = class extends Own {
      constructor(...given) {
        super(...given);
        for (const name of ['open', 'device', 'devices'])
          this.addEventListener(name, () => (counts[name] = (counts[name] ?? 0) + 1));
      }
    };
  })()`);

/** How often the page received that since it was opened. */
const heard = (page: Page, name: 'open' | 'device' | 'devices'): Promise<number> =>
  page.evaluate(`window.heard.${name} ?? 0`);
