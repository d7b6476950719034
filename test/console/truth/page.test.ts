import { describe, expect, test } from 'vitest';
import { browserPath, findWide, pageLoaded, takePicture } from '../browser.ts';
import { person } from '../service.ts';
import { findBroken } from './broken.ts';
import { limitsOf, temperature, useWorld } from './world.ts';

// What the page says, against the API and the data. Only if the machine has Chromium; if not, the run says so.
describe.skipIf(browserPath === null)('the console tells the truth on every page', () => {
  const { addDevice, call, open, url, uuids } = useWorld();

  test('at every width: nothing beyond the edge, no word cut in two, no value cut off', async () => {
    const { page, faults } = await open('');
    const pages = [
      { path: '', ready: '.fleet tbody tr:nth-child(8)' },
      { path: 'alarms', ready: '.alarm' },
      { path: `devices/${uuids().boxes}`, ready: '.chart canvas' },
      { path: 'account/profile', ready: '.shell form' },
      { path: `watch/${uuids().boxes}`, ready: '.shell form' },
    ];
    const wrong: string[] = [];
    for (const { path, ready } of pages) {
      await page.goto(`${url()}/console/${path}`);
      await page.locator(ready).first().waitFor();
      await pageLoaded(page);
      // 720 px is a window of 1440 px at a zoom of 200 %.
      for (const width of [320, 390, 600, 720, 768, 1024, 1280, 1440, 2560]) {
        await page.setViewportSize({ width, height: 800 });
        const found = [...(await findWide(page)), ...(await findBroken(page))];
        wrong.push(...found.map((one) => `${path} at ${width} px: ${one}`));
        await takePicture(page, `width-${path.split('/')[0] || 'fleet'}-${width}`);
      }
    }
    expect([wrong, faults]).toEqual([[], []]);
  });

  test('a reader loads the texts of one language, and another one when it is chosen', async () => {
    const { page } = await open('');
    const loaded = () =>
      page.evaluate<string[]>(
        `performance.getEntriesByType('resource').map(({ name }) => name.split('/').pop())
          .filter((name) => /^(en|de)-/.test(name)).map((name) => name.slice(0, 2))`,
      );
    await page.getByRole('heading', { name: 'Devices' }).waitFor();
    expect(await loaded()).toEqual(['en']);
    await page.locator('.foot summary').click();
    const choose = (language: string) =>
      page.locator('.preferences select').last().selectOption({ label: language });
    // What cannot be loaded changes nothing, and is said.
    await page.route(/\/de-[^/]+\.js$/, (route) => route.abort());
    await choose('Deutsch');
    await page.getByText('The service is not responding').waitFor();
    await page.getByRole('heading', { name: 'Devices' }).waitFor();
    await page.unrouteAll();
    await page.reload();
    await page.locator('.foot summary').click();
    await choose('Deutsch');
    await page.getByRole('heading', { name: 'Geräte' }).waitFor();
    expect(await loaded()).toEqual(['en', 'de']);
    await choose('English');
    await page.getByRole('heading', { name: 'Devices' }).waitFor();
  });

  test('a page opened while offline loads by itself once it is online', async () => {
    const { page } = await open('alarms');
    await page.locator('.alarm').first().waitFor();
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Devices', exact: true }).click();
    await page.getByText('The service is not responding').first().waitFor();
    await page.context().setOffline(false);
    await page.locator('.fleet tbody tr').first().waitFor();
    await expect.poll(() => page.getByText('The service is not responding').count()).toBe(0);
    // So does one whose script is missing too.
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Cold room 1', exact: true }).click();
    await page.getByText('The service is not responding').first().waitFor();
    await page.context().setOffline(false);
    await page.locator('.card .value').first().waitFor();
    // What somebody did in vain is not blamed on the service any longer.
    await page.goto(`${url()}/console/devices/${uuids().boxes}?tab=settings`);
    await page.getByLabel('Separated by commas').fill('attic');
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Save labels' }).click();
    await page.getByText('that your browser is online').first().waitFor();
    await page.context().setOffline(false);
    await expect.poll(() => page.getByText('The service is not responding').count()).toBe(0);
    expect(await page.getByLabel('Separated by commas').inputValue()).toBe('attic');
    // And one whose service was away, of which the browser says nothing.
    await page.goto(`${url()}/console/alarms`);
    await page.route('**/*', (route) => route.abort());
    await page.getByRole('link', { name: 'Add device', exact: true }).click();
    await page.getByText('The service is not responding').first().waitFor();
    await page.unrouteAll();
    await page.getByRole('heading', { name: 'Add a device' }).waitFor();
  });

  test('a session that ends keeps what was typed, and says that it ended', async () => {
    const { uuid } = await addDevice('Barn', [temperature]);
    const { page } = await open(`watch/${uuid}`);
    await page.getByLabel('Alarm above', { exact: true }).fill('31.5');
    type Sessions = { sessions: { id: string; current: boolean }[] };
    const { sessions } = await call<Sessions>('GET', '/v2/accounts/sessions');
    for (const { id, current } of sessions)
      if (!current) await call('DELETE', `/v2/accounts/sessions/${id}`);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Your session has ended').waitFor();
    // Chromium closes a dialog by itself on the second Escape.
    for (const _ of [1, 2, 3]) await page.keyboard.press('Escape');
    await dialog.getByText('Your session has ended').waitFor();
    await dialog.getByLabel('E-mail address').fill(person.email);
    await dialog.getByLabel('Password', { exact: true }).fill(person.password);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Alarm above', { exact: true }).inputValue()).toBe('31.5');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await limitsOf(call, uuid)).toMatchObject([
      ['Temperature above 31.5\u00a0°C', { isGt: 31.5 }, undefined],
    ]);
  });

  test('with a wrong clock the page says so, and shows what was measured', async () => {
    const { uuid, send } = await addDevice('Attic', [temperature]);
    await send({ sId: '0x10', val: 19.5 });
    const { page, faults } = await open('');
    await page.addInitScript(`const { now } = Date; Date.now = () => now() + 26 * 3_600_000;`);
    await page.goto(`${url()}/console/devices/${uuid}`);
    await page.getByText("Your browser's clock is 1 day 2").waitFor();
    await page.locator('.chart canvas').waitFor();
    expect(await page.getByText('Nothing was measured').count()).toBe(0);
    await page
      .locator('.card')
      .getByText(/just now|min/)
      .waitFor();
    expect(faults).toEqual([]);
  });

  test('the next page begins at its top, and a device leads back to the list as it was', async () => {
    const names = Array.from({ length: 60 }, (_, place) => `Shelf ${place + 100}`);
    const devices = names.map((name) => ({ device: { name }, module: [], labels: ['shelf'] }));
    await call('POST', '/v2/devices/batch', { devices });
    const { page, faults } = await open('?label=shelf');
    await page.getByText('1 to 50 of 60').waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByText('51 to 60 of 60').waitFor();
    expect(await page.evaluate('scrollY')).toBe(0);
    await page.getByRole('link', { name: 'Shelf 155' }).click();
    await page.getByRole('heading', { name: 'Shelf 155' }).waitFor();
    await page.getByRole('link', { name: 'All devices' }).click();
    await page.getByText('51 to 60 of 60').waitFor();
    expect(new URL(page.url()).searchParams.get('label')).toBe('shelf');
    expect(faults).toEqual([]);
  });

  test('chips count within the search and the label, as the API does', async () => {
    const devices = ['Wagon 1', 'Wagon 2', 'Cart 3'].map((name) => ({
      device: { name },
      module: [],
      labels: ['rolling', name.slice(0, 4)],
    }));
    await call('POST', '/v2/devices/batch', { devices });
    const { page, faults } = await open('?label=rolling');
    const chip = (name: RegExp) => page.locator('.chips').getByRole('link', { name });
    await chip(/^All 3$/).waitFor();
    await page.getByRole('searchbox').fill('wagon');
    await chip(/^All 2$/).waitFor();
    await chip(/^Not connected 2$/).click();
    await page.getByText('1 to 2 of 2').waitFor();
    await chip(/^Online 0$/).click();
    await chip(/^All 2$/).waitFor();
    await page.getByText('No matching devices').waitFor();
    await page
      .getByRole('button', { name: 'Show all devices' })
      .or(page.getByRole('link', { name: 'Show all devices' }))
      .waitFor();
    // A view is a name for what the URL says; it is there again after a reload, and on its list only.
    await page.getByRole('link', { name: /^All 2$/ }).click();
    await page.getByText('Views', { exact: true }).click();
    await page.getByLabel('Name of this view').fill('Wagons');
    await page.getByRole('button', { name: 'Save view' }).click();
    await page.goto(`${url()}/console/alarms?state=closed`);
    await page.getByText('Views', { exact: true }).click();
    await page.getByLabel('Name of this view').waitFor();
    expect(await page.getByRole('link', { name: 'Wagons' }).count()).toBe(0);
    await page.goto(`${url()}/console/`);
    await page.getByText('Views', { exact: true }).click();
    await page.getByRole('link', { name: 'Wagons' }).click();
    await page.getByText('1 to 2 of 2').waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('wagon');
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      label: 'rolling',
      search: 'wagon',
    });
    await page.getByRole('button', { name: 'Remove the view Wagons' }).click();
    await page.getByRole('link', { name: 'Wagons' }).waitFor({ state: 'detached' });
    type Counts = { counts: Record<string, number> };
    type Configured = { device: object; module: object[] };
    // By a value, by one beyond its limit, and by the version of the software.
    const { uuid: hot, send } = await addDevice('Kettle', [temperature]);
    const kettle = await call<Configured>('GET', `/v2/devices/${hot}/configuration`);
    await call('PUT', `/v2/devices/${hot}/configuration`, {
      device: { ...kettle.device, swVersion: '2.7' },
      module: kettle.module,
    });
    await send({ sId: '0x10', val: 81.5 });
    await page.goto(`${url()}/console/?search=kettle`);
    await page.getByText('1 to 1 of 1').waitFor();
    const found = async (value: string, filter: string) => {
      await page.getByText('More filters', { exact: true }).click();
      await page.getByLabel('Number').fill(value);
      await page.getByLabel('Software version').fill('2.7');
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.getByText(filter).waitFor();
    };
    await found('81', 'Temperature above 81\u00a0°C');
    await page.getByText('Software 2.7').waitFor();
    await page.getByText('1 to 1 of 1').waitFor();
    await found('82', 'Temperature above 82\u00a0°C');
    await page.getByText('No matching devices').waitFor();
    await chip(/^All 0$/).waitFor();
    const { counts } = await call<Counts>(
      'GET',
      '/v2/devices?counts=true&label=rolling&search=wagon&presence=online',
    );
    expect(counts).toMatchObject({ within: 2, matching: 0, offline: 2, online: 0 });
    expect(faults).toEqual([]);
  });
});
