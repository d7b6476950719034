import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { connectDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { browserPath, cookiesOf, openBrowser, openPage, takePicture } from './browser.ts';
import { acceptProfile, callAs, fill, hostile, person, type Filled } from './filled.ts';
import { box, coldRoom } from './filled-data.ts';
import { expectFocus, tabTo } from './keyboard.ts';
import { consoleService, makeAccount, type TestService } from './service.ts';

describe.skipIf(browserPath === null)('alarms', () => {
  let service: TestService;
  let browser: Browser;
  let filled: Filled;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    filled = await fill(service);
  });
  afterAll(async () => {
    await browser?.close();
    await filled?.close();
    await service?.close();
  });

  const open = async (path: string, credentials = person) => {
    const cookies = await cookiesOf(service.url, credentials);
    const watched = await openPage(browser, 'light', { cookies });
    onTestFinished(() => watched.page.context().close());
    await watched.page.goto(`${service.url}/console/${path}`);
    await watched.page.locator('.shell h1').waitFor();
    return watched;
  };

  test('everything works with the keyboard alone', async () => {
    const { page, faults } = await openPage(browser, 'light');
    onTestFinished(() => page.context().close());
    const { keyboard } = page;
    await page.goto(`${service.url}/console/`);
    await page.locator('input[name=email]').waitFor();
    await tabTo(page, 'E-mail address');
    await keyboard.type(person.email);
    await tabTo(page, 'Password');
    await keyboard.type(person.password);
    await keyboard.press('Enter');
    await page.locator('.fleet tbody tr').nth(7).waitFor();
    await keyboard.press('/');
    await expectFocus(page, 'Search');
    await keyboard.type('cr-101');
    await expect.poll(() => page.locator('.fleet tbody tr').count()).toBe(1);
    await tabTo(page, 'Cold room 1');
    await keyboard.press('Enter');
    await page.locator('h1', { hasText: 'Cold room 1' }).waitFor();
    // The next Tab continues in the new page, not at the start of the menu.
    await tabTo(page, 'All devices');
    await keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await keyboard.press('Escape');
    await expectFocus(page, 'All devices');
    await keyboard.press('g');
    await keyboard.press('a');
    await page.locator('h1', { hasText: 'Alarms' }).waitFor();
    await page.locator('.alarm').waitFor();
    await tabTo(page, 'Snooze');
    await keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await keyboard.press('Escape');
    await expectFocus(page, 'Snooze');
    await keyboard.press('Enter');
    await tabTo(page, '1 hour');
    await keyboard.press('ArrowRight');
    await tabTo(page, 'Reason');
    await keyboard.type('g a / ?');
    await keyboard.press('Enter');
    await page.getByText(': g a / ?').waitFor();
    await expectFocus(page, 'End snooze');
    await keyboard.press('Enter');
    await expectFocus(page, 'Snooze');
    // The skip link comes first on a page.
    await page.reload();
    await page.locator('.alarm').waitFor();
    await tabTo(page, 'Skip to content');
    await keyboard.press('Enter');
    await tabTo(page, 'Open');
    expect(faults).toEqual([]);
  });

  test('a person snoozes, mutes, acknowledges and closes an alarm', async () => {
    const { page, faults } = await open('');
    const icon = () => page.locator('link[rel=icon]').getAttribute('href');
    await page.locator('.badge').waitFor();
    expect(await page.title()).toBe('(1) Devices · Sensorium');
    expect(decodeURIComponent((await icon()) ?? '')).toContain('>1</text>');
    await page.getByRole('link', { name: /^In alarm/ }).click();
    await expect.poll(() => page.locator('.fleet tbody tr').allInnerTexts()).toHaveLength(1);
    await page.getByText(/^Too warm, since/).waitFor();
    await page.getByRole('link', { name: /^Alarms/ }).click();
    const act = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await act('Snooze');
    await page.getByLabel('4 hours').check({ force: true });
    await page.getByLabel('Reason').fill(hostile);
    await page.getByRole('dialog').getByRole('button', { name: 'Snooze' }).click();
    await page.getByText(`: ${hostile}`).waitFor();
    await act('End snooze');
    await act('Mute device');
    await page.getByRole('dialog').getByRole('button', { name: 'Mute device' }).click();
    await page.getByText(/^Device muted until/).waitFor();
    await act('Unmute device');
    await act('Acknowledge');
    await page.getByText('Nothing new needs your attention').waitFor();
    await page.getByRole('link', { name: 'Show acknowledged alarms' }).click();
    await page.getByText(/Acknowledged at \d\d:\d\d\./).waitFor();
    // The alarm lasts: the device's page still shows it.
    await page.locator('.alarm-device').click();
    await page.locator('.device-seen').waitFor();
    await page.getByText(/Acknowledged at \d\d:\d\d\./).waitFor();
    await page.goBack();
    await act('Close');
    await page
      .getByRole('dialog')
      .getByText(/^It is \d+\.\d\u00a0°C, above 8\u00a0°C\./)
      .waitFor();
    await act('Close anyway');
    await page.getByText('No acknowledged alarms').waitFor();
    await page.getByRole('link', { name: 'Closed' }).click();
    await page.getByText(/Closed at \d\d:\d\d: somebody closed it\./).waitFor();
    expect(await page.title()).toBe('Alarms · Sensorium');
    expect(await icon()).not.toContain('text');
    // Back leads through the lists that were visited.
    await page.goBack();
    await page.getByText('No acknowledged alarms').waitFor();
    await page.getByRole('link', { name: /^Open/ }).click();
    await page.getByText(/^All quiet since \d\d:\d\d$/).waitFor();
    await takePicture(page, 'alarms-quiet-light');
    expect(faults).toEqual([]);
  });

  test('says why nobody was notified, leads to the chart at its time, and is filtered', async () => {
    const somebody = { email: 'hopper@example.com', password: 'correct horse' };
    const call = callAs(service.url, await makeAccount(service.url, somebody));
    const [state] = coldRoom.states;
    const events = state?.events.map((event) => ({
      ...event,
      actions: { cloud: { sendPush: true }, alarm: true },
    }));
    const telling = { ...coldRoom, states: [{ ...state, events }] };
    const registration = await call<Registration>('POST', '/v2/devices', box('Cellar', 'C-1'));
    const { deviceAuthUuid: uuid } = registration;
    await call('PUT', `/v2/devices/${uuid}/labels`, { labels: ['cellar'] });
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [telling] });
    const device = await connectDevice(registration);
    onTestFinished(() => device.end());
    await acceptProfile(device);
    const { page, faults } = await open('alarms', somebody);
    await page.getByText('All quiet', { exact: true }).waitFor();
    // Two hours ago, by the device's clock. The page notices it by itself.
    const ts = Date.now() - 7_200_000;
    await device.publish('up/measurements', [
      { sId: '0x10', val: 9, ts: ts - 1_000 },
      { sId: '0x10', val: 9.7, ts },
    ]);
    // Above the list, and on the card.
    await page.getByText('1 alarm: Nobody was notified, because').waitFor();
    await page.getByText(/^Nobody was notified, because/).waitFor();
    await page.getByText(/, for 2 hrs?/).waitFor();
    await expect.poll(() => page.title()).toBe('(1) Alarms · Sensorium');
    await page.goto(`${service.url}/console/alarms?label=attic`);
    await page.getByText('No matching alarms').waitFor();
    await page.getByRole('combobox', { name: 'Label' }).selectOption('cellar');
    await page.locator('.alarm').waitFor();
    await page.getByText('Details').click();
    await page.getByRole('link', { name: 'Alarms of this device' }).click();
    await page.getByText('Only alarms of Cellar').waitFor();
    // What somebody has in hand is not over.
    const { alarms } = await call<{ alarms: { alarmId: number }[] }>('GET', '/v2/alarms');
    await call('POST', `/v2/alarms/${alarms[0]?.alarmId}/acknowledge`, {});
    await page.getByText('1 of these alarms is acknowledged, and not over yet.').waitFor();
    await page.getByRole('link', { name: 'Show acknowledged alarms' }).click();
    await page.locator('.alarm').waitFor();
    await page.getByRole('link', { name: 'Chart at that time' }).click();
    await page.locator('.chart canvas').first().waitFor();
    const query = new URL(page.url()).searchParams;
    expect(Number(query.get('from'))).toBe(ts - 1_000 - 3_600_000);
    expect(Number(query.get('to'))).toBeGreaterThan(ts);
    expect(faults).toEqual([]);
  });

  test('a form that refuses leads to its first wrong field, also where it is folded away', async () => {
    const { page } = await open(`watch/${filled.uuids.hive}`);
    const field = (name: string) => page.getByLabel(name, { exact: true }).first();
    await page.getByText('Delay, margin and rate of change').first().click();
    await field('Alarm when it rises by more than').fill('many');
    await page.getByText('Delay, margin and rate of change').first().click();
    await page.getByRole('button', { name: 'Save limits' }).click();
    await field('Alarm when it rises by more than').and(page.locator(':focus')).waitFor();
  });
});
