import { describe, expect, test } from 'vitest';
import type { Registration } from '../../journeys/app.ts';
import { browserPath, checkPage, takePicture } from '../browser.ts';
import type { Call } from '../filled.ts';
import { type Installed, limitsOf, temperature, useWorld } from './world.ts';

const warm = (value: number, name = `Temperature above ${value}.0\u00a0°C`) => ({
  puId: 1,
  name: 'Limits',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'within the limits',
      events: [
        {
          evId: 1,
          name,
          eventLog: true,
          actions: { alarm: true, cloud: { sendEvent: true, sendPush: true }, keepMs: 300_000 },
          causes: [{ sId: '0x10', orderId: 0, thresholds: { isGt: value } }],
        },
      ],
    },
  ],
});

/** Freezers: `of8` with the same limit, one with another, the others without. Their uuids, in the order of names. */
async function addFreezers(own: Call, { of8, of } = { of8: 4, of: 6 }) {
  const devices = Array.from({ length: of }, (_, place) => ({
    protocol: 'http',
    device: { name: `Freezer ${place + 1}` },
    module: [{ moduleId: 'm', senses: [temperature] }],
  }));
  const batch = await own<{ devices: Registration[] }>('POST', '/v2/devices/batch', { devices });
  const uuids = batch.devices.map(({ deviceAuthUuid }) => deviceAuthUuid);
  const install = (deviceAuthUuids: string[], value: number) =>
    own('POST', '/v2/devices/profile', { deviceAuthUuids, purposes: [warm(value)] });
  await install(uuids.slice(0, of8), 8);
  await install(uuids.slice(of8, of8 + 1), 10);
  return { uuids, install };
}

/** The thresholds of a device's newest profile, each with the severity of its alarm. */
async function severitiesOf(own: Call, uuid: string) {
  const found = await own<Installed>('GET', `/v2/devices/${uuid}/configuration`);
  const { purposes } = found.pendingProfile.purposes ? found.pendingProfile : found.currentProfile;
  return (purposes ?? []).flatMap(({ states }) =>
    states.flatMap(({ events }) =>
      events.map(({ causes, actions }) => ({
        ...causes[0]?.thresholds,
        severity: actions.severity ?? 'warning',
      })),
    ),
  );
}

// What the page says, against the API and the data. Only if the machine has Chromium; if not, the run says so.
describe.skipIf(browserPath === null)('the console tells the truth of many devices', () => {
  const { openOwn } = useWorld();

  test('limits of a selection: what differs is said first, and what changed meanwhile is left alone', async () => {
    const watched = await openOwn('');
    const { own, page, faults } = watched;
    const { uuids, install } = await addFreezers(own);
    await page.getByText('1 to 6 of 6').waitFor();
    await page.getByLabel('Select this page').check();
    await page.getByRole('button', { name: 'Limits …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('These devices do not all have the same limits').waitFor();
    const groups = dialog.locator('.groups label');
    await expect
      .poll(async () => (await groups.allInnerTexts()).map((text) => text.replaceAll('\n', ' ')))
      .toEqual([
        '4 devices, such as Freezer 1: Temperature above 8\u00a0°C',
        '1 device, such as Freezer 5: Temperature above 10\u00a0°C',
        '1 device, such as Freezer 6: No profile, so no limits.',
      ]);
    expect(await groups.nth(2).locator('input').isChecked()).toBe(false);
    const field = dialog.getByRole('textbox', { name: 'Temperature above' });
    await dialog.getByText('Now 8\u00a0°C (4 devices), 10\u00a0°C (1 device).').waitFor();
    expect(await field.inputValue()).toBe('');
    await groups.nth(1).locator('input').uncheck();
    expect(await field.inputValue()).toBe('8');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('Enter another number, or').waitFor();
    await field.fill('9.5');
    await checkPage(watched, 'limits-of-many');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('4 devices get this. 2 devices keep what they have.').waitFor();
    // What was typed is still there.
    await dialog.getByRole('button', { name: 'Back' }).click();
    expect(await field.inputValue()).toBe('9.5');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    const changes = dialog.locator('.limit-changes li li');
    await expect
      .poll(() => changes.allInnerTexts())
      .toEqual(['Temperature above 8\u00a0°C → 9.5\u00a0°C']);
    await takePicture(page, 'limits-of-many-preview');
    // Somebody else is faster.
    await install(uuids.slice(1, 2), 12);
    await dialog.getByRole('button', { name: 'Change limits' }).click();
    await page.getByText('Limits changed: 3 devices').waitFor();
    expect(await page.getByText('failed').count()).toBe(0);
    await page.getByText('3 devices keep what they had').click();
    const failed = page.locator('.failures li');
    await expect.poll(() => failed.count()).toBe(3);
    for (const name of ['Freezer 2', 'Freezer 5', 'Freezer 6'])
      await failed.filter({ hasText: name }).getByText('It has another profile.').waitFor();
    const limits = () => Promise.all(uuids.map((uuid) => limitsOf(own, uuid)));
    const of = (value: string) => [
      [`Temperature above ${value}\u00a0°C`, { isGt: Number(value) }, undefined],
    ];
    const changed = ['9.5', '12.0', '9.5', '9.5', '10.0'].map(of);
    expect(await limits()).toEqual([...changed, []]);
    await page.getByRole('button', { name: 'Undo' }).click();
    // Only those that it had changed.
    await page.getByText('With their previous profile again: 3 devices').waitFor();
    expect(await limits()).toEqual([...['8.0', '12.0', '8.0', '8.0', '10.0'].map(of), []]);
    expect(faults).toEqual([]);
  });

  test('limits of several profiles, and of devices without one: one job, and one way back', async () => {
    const watched = await openOwn('');
    const { own, page, faults } = watched;
    const { uuids } = await addFreezers(own, { of8: 12, of: 20 });
    const cold = warm(10);
    const [state] = cold.states;
    state?.events.push({
      ...(state.events[0] as (typeof state.events)[0]),
      evId: 2,
      name: 'too cold',
      causes: [{ sId: '0x10', orderId: 0, thresholds: { isLt: 2 } }],
    } as unknown as (typeof state.events)[0]);
    const some = uuids.slice(12, 17);
    await own('POST', '/v2/devices/profile', { deviceAuthUuids: some, purposes: [cold] });
    await own('POST', '/v2/purposes', { ...warm(3, 'thawing'), name: 'Ice' });
    await page.getByText('1 to 20 of 20').waitFor();
    await page.getByLabel('Select this page').check();
    const dialog = page.getByRole('dialog');
    const open = () => page.getByRole('button', { name: 'Limits …' }).click();
    const next = () => dialog.getByRole('button', { name: 'Continue' }).click();
    const said = async () =>
      (await dialog.locator('.limit-changes > li').allInnerTexts()).map((text) =>
        text.replaceAll(/\s*\n\s*/g, ' | '),
      );
    await open();
    await dialog.getByText('Now 8\u00a0°C (12 devices), 10\u00a0°C (5 devices).').waitFor();
    await dialog.getByLabel('3 devices, such as Freezer 18: No profile').check();
    await dialog.getByRole('textbox', { name: 'Temperature above' }).fill('9');
    await dialog.getByLabel('How serious these alarms are').selectOption('Critical');
    await next();
    await dialog.getByText('Enter at least one limit').waitFor();
    await dialog.getByRole('textbox', { name: 'Alarm above' }).fill('7');
    await checkPage(watched, 'limits-of-groups');
    await page.setViewportSize({ width: 390, height: 844 });
    await checkPage(watched, 'limits-of-groups-phone');
    await next();
    await dialog.getByText('20 devices get this.').waitFor();
    expect(await said()).toEqual([
      '12 devices, such as Freezer 1: | Temperature above 8\u00a0°C → 9\u00a0°C | Alarms: Warning → Critical',
      '5 devices, such as Freezer 13: | Temperature above 10\u00a0°C → 9\u00a0°C | Alarms: Warning → Critical',
      '3 devices, such as Freezer 18: | Temperature above 7.0\u00a0°C',
    ]);
    await checkPage(watched, 'limits-of-groups-preview-phone');
    await page.setViewportSize({ width: 1440, height: 900 });
    await takePicture(page, 'limits-of-groups-preview');
    await dialog.getByRole('button', { name: 'Change limits' }).click();
    await page.getByText('Limits changed: 20 devices').waitFor();
    const limits = () => Promise.all(uuids.map((uuid) => severitiesOf(own, uuid)));
    const all = (first: object[], second: object[], third: object[]) =>
      uuids.map((_, place) => (place < 12 ? first : place < 17 ? second : third));
    const critical = (thresholds: object) => ({ ...thresholds, severity: 'critical' });
    const nine = critical({ isGt: 9 });
    const twoAndNine = [nine, critical({ isLt: 2 })];
    expect(await limits()).toEqual(all([nine], twoAndNine, [critical({ isGt: 7 })]));
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('With their previous profile again: 20 devices').waitFor();
    const warning = (thresholds: object) => ({ ...thresholds, severity: 'warning' });
    const before = [{ isGt: 8 }, { isGt: 10 }, { isLt: 2 }].map(warning);
    expect(await limits()).toEqual(all(before.slice(0, 1), before.slice(1), []));
    // They have a profile without purposes now. The others stay as they are.
    await page.getByLabel('Select this page').check();
    await open();
    await dialog.getByLabel('3 devices, such as Freezer 18: No profile').check();
    await dialog.getByLabel('Devices without a profile get').selectOption('Ice');
    await next();
    await dialog.getByText('3 devices get this. 17 devices keep what they have.').waitFor();
    expect(await said()).toEqual(['3 devices, such as Freezer 18: | Ice']);
    await dialog.getByRole('button', { name: 'Change limits' }).click();
    await page.getByText('Limits changed: 3 devices').waitFor();
    const ice = warning({ isGt: 3 });
    expect(await limits()).toEqual(all(before.slice(0, 1), before.slice(1), [ice]));
    expect(faults).toEqual([]);
  });

  test('a profile of stored purposes: what it replaces is said before it is installed', async () => {
    const watched = await openOwn('');
    const { own, page, faults } = watched;
    const { uuids } = await addFreezers(own);
    await page.getByLabel('Select this page').check();
    await page.getByRole('button', { name: 'Profile …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('No purposes are stored').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await own('POST', '/v2/purposes', { ...warm(10), name: 'Limits' });
    await own('POST', '/v2/purposes', { ...warm(3, 'thawing'), puId: 2, name: 'Ice' });
    await page.getByRole('button', { name: 'Profile …' }).click();
    await dialog.getByLabel('Ice').check();
    await checkPage(watched, 'profile-of-many');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await expect
      .poll(() => dialog.locator('.limit-changes li').allInnerTexts())
      .toEqual([
        '4 devices – No longer: Limits. New: Ice.',
        '1 device – No longer: Limits. New: Ice.',
        '1 device – No profile, so no limits. New: Ice.',
      ]);
    await dialog.getByRole('button', { name: 'Install' }).click();
    await page.getByText('Profile installed (Ice): 6 devices').waitFor();
    for (const uuid of uuids)
      expect(await limitsOf(own, uuid)).toEqual([['thawing', { isGt: 3 }, undefined]]);
    expect(faults).toEqual([]);
  });

  test('a purpose of the same name: what changes is said, and that nobody would be told', async () => {
    const watched = await openOwn('');
    const { own, page, faults } = watched;
    await addFreezers(own, { of8: 2, of: 3 });
    const changed = warm(9.5, 'Too warm');
    const [state] = changed.states;
    const [event] = state?.events ?? [];
    if (!state || !event) throw new Error('The purpose has no event.');
    Object.assign(event.actions, { severity: 'info' });
    Object.assign(event.causes[0] ?? {}, { threshold: { forMs: 600_000 } });
    state.events.push({ ...event, evId: 2, name: 'Much too warm' });
    await own('POST', '/v2/purposes', changed);
    await page.getByLabel('Select this page').check();
    await page.getByRole('button', { name: 'Profile …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Limits').check();
    await dialog.getByRole('button', { name: 'Continue' }).click();
    const first = dialog.locator('.limit-changes > li').first();
    await first.getByText('2 devices – Changed: Limits.').waitFor();
    const texts = async () =>
      (await first.locator('li').allInnerTexts()).map((text) => text.replaceAll('\u00a0', ' '));
    await expect
      .poll(texts)
      .toEqual([
        'The event “Temperature above 8.0 °C” is called “Too warm”.',
        'Too warm: Temperature above 8 °C → Temperature above 9.5 °C, for 10 mins',
        'Too warm: Opens an alarm (Warning). → Opens an alarm (Info).',
        expect.stringMatching(
          /^New event “Much too warm”: Temperature above 9.5 °C, for 10 mins. Opens an alarm/,
        ),
      ]);
    await dialog.getByText('Nobody will be notified: the account has no contacts.').waitFor();
    await checkPage(watched, 'profile-changed');
    await dialog.getByRole('button', { name: 'Back' }).click();
    await own('PUT', '/v2/accounts/contacts', {
      webhooks: [{ url: 'https://example.org/hook', minSeverity: 'warning' }],
    });
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('Nobody will be notified of some events').waitFor();
    expect(faults).toEqual([]);
  });

  test('what is installed where: as the API counts it, and the devices of each', async () => {
    const watched = await openOwn('');
    const { own, page, faults } = watched;
    await addFreezers(own);
    await page.getByRole('link', { name: 'Profiles', exact: true }).click();
    const entries = page.locator('.installed > li');
    await expect.poll(() => entries.count()).toBe(2);
    type Listed = { profiles: { devices: number; pending: number; refused: number }[] };
    const { profiles } = await own<Listed>('GET', '/v2/profiles');
    const numbers = async () =>
      (await page.locator('.installed-name + p').allInnerTexts()).map((text) =>
        [...text.matchAll(/\d+/g)].map(([number]) => Number(number)),
      );
    expect(await numbers()).toEqual(
      profiles.map(({ devices, pending }) => [devices + pending, pending]),
    );
    expect(await numbers()).toEqual([
      [1, 1],
      [4, 4],
    ]);
    await entries.nth(1).getByText('Content').click();
    await entries.nth(1).getByText('Temperature above 8\u00a0°C').first().waitFor();
    await checkPage(watched, 'profiles-of-many');
    await entries.nth(1).getByRole('link', { name: '4 devices' }).click();
    await page.getByText('1 to 4 of 4').waitFor();
    await page.getByText('With the profile Limits').waitFor();
    expect(faults).toEqual([]);
  });

  test('limits of a label: devices get them, and it is said which have limits of their own', async () => {
    const watched = await openOwn('profiles');
    const { own, page, faults } = watched;
    const { uuids } = await addFreezers(own);
    const [first = '', last = ''] = [uuids[0], uuids[5]];
    for (const uuid of [first, last])
      await own('PUT', `/v2/devices/${uuid}/labels`, { labels: ['deep'] });
    await own('POST', '/v2/purposes', warm(3));
    await page.reload();
    const section = page.getByRole('region', { name: 'Limits of labels' });
    await section.getByLabel('Label', { exact: true }).fill('deep');
    await section.getByRole('button', { name: 'Add label' }).click();
    await checkPage(watched, 'label-limits');
    await section.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Limits of labels set: 1 device').waitFor();
    // The one without a profile has them; the other one keeps its own.
    expect(await limitsOf(own, last)).toEqual([
      ['Temperature above 3.0\u00a0°C', { isGt: 3 }, undefined],
    ]);
    expect(await limitsOf(own, first)).toEqual([
      ['Temperature above 8.0\u00a0°C', { isGt: 8 }, undefined],
    ]);
    const { origin } = new URL(page.url());
    await page.goto(`${origin}/console/devices/${last}`);
    await page.getByText('limits of the label “deep”').waitFor();
    await page.getByRole('link', { name: 'Set limits' }).click();
    await page.getByText('These limits come from the label “deep”').waitFor();
    await page.goto(`${origin}/console/watch/${first}`);
    await page.getByText('This device has limits of its own').waitFor();
    await page.getByRole('button', { name: 'Use the limits of the label' }).click();
    await page.getByText('The device gets the limits of the label “deep”').waitFor();
    await expect
      .poll(() => limitsOf(own, first))
      .toEqual([['Temperature above 3.0\u00a0°C', { isGt: 3 }, undefined]]);
    expect(faults).toEqual([]);
  });
});
