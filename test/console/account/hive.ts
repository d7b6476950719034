import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { linkIn } from '../../contacts/people.ts';
import { long, short } from '../../support/share.ts';
import { checkPage, openPage } from '../browser.ts';
import { createHuman, sayFigure } from '../human.ts';
import { publish } from '../publish.ts';
import { press, type World } from './world.ts';

/** From nothing to a notification: alarms by limits, and somebody who receives them. */
export function testBeingTold(world: () => World): void {
  long('somebody with one hive, on a phone, in German: until an alarm notified them', async () => {
    const own = { email: 'imkerin@example.org', password: 'Lindenblüte im Juni' };
    const watched = await openPage(world().browser, 'phone', { locale: 'de-DE' });
    const { page } = watched;
    const human = createHuman(page);
    const button = (name: string) => page.getByRole('button', { name, exact: true });
    const step = (name: string) => checkPage(watched, `hive-${name}`);
    await page.goto(world().url);
    await human.waitFor(page.getByRole('heading', { name: 'Anmelden' }));
    await human.click(button('Konto anlegen'));
    await human.type(page.getByLabel('E-Mail-Adresse'), own.email);
    await human.type(page.getByLabel('Passwort', { exact: true }), own.password);
    await step('1-register');
    await human.click(button('Konto anlegen'));
    await human.waitFor(page.getByText('Noch keine Geräte'));
    await step('2-empty');
    await human.click(page.locator('main').getByRole('link', { name: 'Gerät hinzufügen' }));
    await human.waitFor(page.locator('.template').first());
    await human.click(page.locator('.template', { hasText: 'Bienenstock' }));
    await human.type(page.getByLabel('Name'), 'Volk an der Linde');
    await step('3-add');
    await human.click(page.getByRole('button', { name: 'Gerät hinzufügen' }));
    await human.waitFor(page.locator('.waiting'));
    await step('4-connect');
    await human.click(page.getByRole('button', { name: /Passwort/ }));
    await human.click(button('Kopieren'));
    human.act(3);
    await page.locator('.copy-text', { hasText: '-P ' }).waitFor();
    const command = (await page.locator('.copy-text').innerText()).replaceAll('\\\n', ' ');
    await publish(command, (message) => message);
    await human.waitFor(page.locator('.first-values').getByText('38,40'));
    sayFigure('A hive: to the first value', human.figure());
    await step('5-value');

    await human.click(page.getByRole('link', { name: 'Grenzen festlegen' }));
    await human.waitFor(page.getByText('Noch niemand.'));
    await human.type(page.getByRole('group', { name: /^Gewicht/ }).getByLabel('Alarm unter'), '30');
    await step('6-alarm');
    await human.click(button('Grenzen speichern'));
    await human.waitFor(page.getByText('Gespeichert.'));
    await human.waitFor(page.getByText('Noch wird niemand benachrichtigt'));
    await human.click(button('Kontakt hinzufügen'));
    await human.click(button('Hinzufügen'));
    await human.waitFor(page.getByText('nicht bestätigt'));
    await step('8-contact');
    // The mail client opens a tab of its own.
    const tab = await page.context().newPage();
    await tab.goto(linkIn(await world().mail.mailTo(own.email), 'confirm'));
    human.act(2);
    await tab.getByRole('button', { name: 'Bestätigen' }).click();
    await tab.getByRole('heading', { name: 'Bestätigt' }).waitFor();
    await tab.close();
    await page.getByText('nicht bestätigt').waitFor({ state: 'detached' });
    await human.click(button('Test an alle senden'));
    await human.waitFor(page.getByText('Die Testnachricht wurde zugestellt'));
    await step('9-tried');

    await publish(command, (message) => message.replace('38.4', '38.2'));
    await publish(command, (message) => message.replace('38.4', '21.5'));
    human.act(2);
    const told = await world().mail.mailTo(own.email, ({ text }) => text.includes('21,5'));
    expect(told.headers['subject']).toContain('Volk an der Linde');
    await human.click(page.getByRole('link', { name: /^Alarme/ }));
    await human.waitFor(page.getByText(/Gewicht unter 30,00/));
    await page.getByText(/Benachrichtigt \(.*example\.org/).waitFor();
    sayFigure('A hive: to an alarm that told somebody', human.figure());
    await step('10-alarms');
    await human.click(button('Aufschieben'));
    await human.click(page.getByRole('dialog').getByRole('button', { name: 'Aufschieben' }));
    await page
      .getByText('Ist der Alarm nach dem Aufschub noch offen, wird erneut jemand benachrichtigt')
      .waitFor();
    await human.click(button('Quittieren'));
    await human.click(page.getByRole('link', { name: 'Quittierte Alarme anzeigen' }));
    await page.getByText(/Quittiert \(/).waitFor();
    expect(await page.getByText('Ist der Alarm nach dem Aufschub').count()).toBe(0);
    await page.locator('.alarm a').first().click();
    await page.getByRole('link', { name: 'Grenzen festlegen' }).click();
    expect(
      await page
        .getByRole('group', { name: /^Gewicht/ })
        .getByLabel('Alarm unter')
        .inputValue(),
    ).toBe('30');
    await page.getByRole('listitem').getByText(own.email).waitFor();
    await page.context().close();
  });

  short('alarms by limits: says if nothing was entered, and what would be replaced', async () => {
    const { page, token, watched } = await world().open('profile', 'dark');
    const call = async (path: string, body: unknown) => {
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
      const options = { method: 'POST', headers, body: JSON.stringify(body) };
      return (await (await fetch(world().url + path, options)).json()) as {
        deviceAuthUuid: string;
      };
    };
    const senses = [{ sId: '0x10', name: 'Temperature', unit: '°C' }];
    const module = [{ moduleId: 'probe', senses }];
    const { deviceAuthUuid } = await call('/v2/devices', { device: { name: 'Cellar' }, module });
    await page.goto(`${world().url}/console/watch/${deviceAuthUuid}`);
    await press(page, 'Save limits');
    await page.getByText('Enter at least one limit').waitFor();
    await checkPage(watched, 'watch-nothing-dark');
    const purposes: unknown = JSON.parse(await readFile('examples/freezer.json', 'utf8'));
    await call('/v2/devices/profile', {
      deviceAuthUuids: [deviceAuthUuid],
      purposes: [purposes],
    });
    await page.reload();
    await page.getByText(/^This page did not write the profile/).waitFor();
    await press(page, 'Use simple limits instead');
    await page.getByRole('dialog').getByRole('button', { name: 'Enter simple limits' }).click();
    await page.getByText('Saving replaces the whole profile of this device.').waitFor();
    await page.context().close();
  });
}
