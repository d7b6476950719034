import { describe, expect, test } from 'vitest';
import { browserPath } from '../browser.ts';
import { person } from '../filled.ts';
import { temperature, useWorld } from './world.ts';

// What a device sends that is not taken as it is meant, and what is typed and must not be lost. Needs Chromium.
describe.skipIf(browserPath === null)('the console says what was not taken', () => {
  const { addDevice, call, open, openOwn, sqlRun } = useWorld();

  test('messages that were rejected before others were stored, and a unit that is not read', async () => {
    const { uuid, send } = await addDevice('Larder', [temperature]);
    await send({ sId: '0x10', val: 200 }, { sId: '0x10', val: 5 });
    const { page, faults } = await open(`devices/${uuid}`);
    const trouble = page.locator('.trouble');
    type List = { rejections: { reason: string }[] };
    const { rejections } = await call<List>('GET', `/v2/devices/${uuid}/rejections`);
    expect(rejections).toHaveLength(1);
    await trouble.getByText(/^1 message was rejected in the last 24 hours: .*200/).waitFor();
    await send({ sId: '0x10', val: 41, unit: '°F' });
    await trouble.getByText(/The device sends a unit with its values/).waitFor();
    expect(await trouble.count()).toBe(2);
    await trouble.filter({ hasText: 'sends a unit' }).getByRole('link').click();
    await page
      .getByText('“unit”')
      .or(page.getByText('unit', { exact: false }))
      .first()
      .waitFor();
    // How serious alarms are is asked before the limits of each sensor.
    await page.goto(page.url().replace(/devices\/.*/, `watch/${uuid}`));
    const first = page.locator('form select, form input').first();
    await first.waitFor();
    expect(await first.getAttribute('name')).toBe('severity');
    expect(faults).toEqual([]);
  });

  test('a session that has ended keeps the address of who was signed in', async () => {
    const { page } = await openOwn('alarms');
    await page.getByText('Nothing is being watched').waitFor();
    const email = await page.evaluate(async () => {
      const answer = await fetch('/console/session');
      return ((await answer.json()) as { account: { email: string } }).account.email;
    });
    expect(email).not.toBe(person.email);
    await sqlRun(
      `delete from session where account_id = (select id from account where email = $1)`,
      [email],
    );
    await page.getByRole('link', { name: 'Devices' }).first().click();
    const field = page.getByRole('dialog').getByLabel('E-mail address');
    await field.waitFor();
    expect(await field.inputValue()).toBe(email);
  });
});
