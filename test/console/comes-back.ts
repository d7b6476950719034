import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { openPage, signIn } from './browser.ts';
import { box } from './filled-data.ts';
import { makeAccount, person, type TestService } from './service.ts';

/** A device that never sent does, while the page asks for nothing every ten seconds: it is online all the same. */
export async function seeItComeBack(
  { url }: TestService,
  browser: Browser,
  db: Database,
): Promise<void> {
  const newcomer = { ...person, email: 'newcomer@example.com' };
  const token = await makeAccount(url, newcomer);
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify(box('Cellar', ''));
  const added = await fetch(`${url}/v2/devices`, { method: 'POST', headers, body });
  const { page } = await openPage(browser, 'light');
  await countHeard(page);
  await signIn(page, url, newcomer);
  await page.clock.install();
  await page.goto(`${url}/console/`);
  await page.getByText('Never connected').waitFor();
  await expect.poll(() => heard(page, 'open')).toBeGreaterThan(0);
  await page.clock.pauseAt(Date.now() + 1_000);
  const device = await connectDevice((await added.json()) as Registration);
  const online = () =>
    db.query(
      `select from presence p join device d on d.id = p.device_id where d.uuid = $1 and p.connected`,
      [device.uuid],
    );
  await expect.poll(async () => (await online()).rowCount).toBe(1);
  await device.publish('up/measurements', { sId: '0x10', val: 4.5 });
  await expect.poll(() => heard(page, 'measurement')).toBeGreaterThan(0);
  await page.clock.runFor(3_000);
  await page.locator('.fleet-state').getByText('Online').waitFor();
  await device.end();
  await page.context().close();
}

/** As if a device that was removed had tried to log in. */
export async function knock(db: Database, uuid: string | undefined): Promise<void> {
  await db.query(
    `insert into refused_login
       (uuid, reason, address, account_id, count, first_at, last_at, is_open)
     select uuid, 'device-removed', '192.0.2.7', account_id, 3, now(), now(), true
       from removed_uuid where uuid = $1`,
    [uuid],
  );
}

/** Has the page count what its streams tell. Before it is opened. */
const countHeard = (page: Page): Promise<unknown> =>
  page.addInitScript(`(() => {
    const counts = (window.heard = {});
    const Own = window.EventSource;
    window.EventSource = class extends Own {
      constructor(...given) {
        super(...given);
        for (const name of ['open', 'measurement'])
          this.addEventListener(name, () => (counts[name] = (counts[name] ?? 0) + 1));
      }
    };
  })()`);

/** How often it has heard that, since it was opened. */
const heard = (page: Page, name: 'open' | 'measurement'): Promise<number> =>
  page.evaluate(`window.heard.${name} ?? 0`);
