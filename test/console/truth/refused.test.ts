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
    await trouble
      .getByText(/^Temperature came with the unit °F, but its settings say °C\./)
      .waitFor();
    expect(await trouble.count()).toBe(2);
    await trouble.filter({ hasText: '°F' }).getByRole('link').click();
    // Not how to silence it: what mends it, on either side.
    const remark = page.locator('.rejections li', { hasText: '°F' });
    await remark.getByText(/let the device send °C without “unit”, or set the unit/).waitFor();
    expect(await remark.innerText()).not.toContain('x-');
    await remark.getByRole('link', { name: 'Change the unit of Temperature' }).click();
    await expect.poll(() => page.evaluate('document.activeElement.value')).toBe('°C');
    // How serious alarms are is asked before the limits of each sensor.
    await page.goto(page.url().replace(/devices\/.*/, `watch/${uuid}`));
    const first = page.locator('form select, form input').first();
    await first.waitFor();
    expect(await first.getAttribute('name')).toBe('severity');
    expect(faults).toEqual([]);
  });

  test('a unit that is that of the settings is no trouble', async () => {
    const { uuid, send } = await addDevice('Pantry', [temperature]);
    await send({ sId: '0x10', val: 4, unit: '°C' });
    const { page } = await open(`devices/${uuid}?tab=rejections`);
    await page.getByText('The values are right: °C is the unit of Temperature').waitFor();
    expect(await page.locator('.trouble').count()).toBe(0);
  });

  test('each thing that a device sends wrong has advice', async () => {
    const { uuid, sendRaw } = await addDevice('Attic', [temperature]);
    const sent = [
      ['measurements', "{'sId': 1}"],
      ['measurements', '{"sId": "0x10"}'],
      ['measurements', '{"sId": "0x99", "val": 1}'],
      ['measurements', '{"sId": "0x10", "val": 400}'],
      ['measurements', `{"sId": "0x10", "val": 4, "ts": ${Date.now() + 9e9}}`],
      ['measurements', '{"sId": "0x10", "val": 4, "ts": 86400000}'],
      ['measurements', '{"sId": "0x10", "val": 4, "value": 4}'],
      ['state', '{"puId": 7, "stId": 9}'],
      ['profile', `{"pId": "${crypto.randomUUID()}", "state": "current"}`],
      ['command', `{"commandId": "${crypto.randomUUID()}", "state": "done"}`],
      ['nothing', '{}'],
    ] as const;
    for (const [topic, text] of sent) await sendRaw(topic, text);
    const { page } = await open(`devices/${uuid}?tab=rejections`);
    const rows = page.locator('.rejections > li');
    type List = { rejections: { reason: string }[] };
    const { rejections } = await call<List>('GET', `/v2/devices/${uuid}/rejections`);
    expect(new Set(rejections.map(({ reason }) => reason)).size).toBeGreaterThan(8);
    await expect.poll(() => rows.count()).toBe(rejections.length);
    const without = rows.filter({ hasNot: page.locator('.rejection-todo') });
    expect(await without.allInnerTexts()).toEqual([]);
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
