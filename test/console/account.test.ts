import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { linkIn } from '../contacts/people.ts';
import { long, short } from '../support/share.ts';
import { testAccess } from './account/access.ts';
import { testBeingTold } from './account/hive.ts';
import { inDialog, press, startWorld, type World } from './account/world.ts';
import { browserPath, checkPage } from './browser.ts';
import { person } from './service.ts';

describe.skipIf(browserPath === null)('the account', () => {
  let started: World;
  const world = () => started;
  beforeAll(async () => {
    started = await startWorld();
  });
  afterAll(() => started?.close());

  testAccess(world);
  testBeingTold(world);

  // every-page.long.test.ts looks at every section in dark mode, and at all of them on a phone.
  long.each(['light', 'phone'] as const)('each section has a URL, %s', async (look) => {
    const { page, watched } = await world().open('', look, person);
    if (look === 'phone') {
      await checkPage(watched, `account-list-${look}`);
      await page.getByRole('link', { name: 'General' }).click();
    }
    await page.getByLabel('Time zone').waitFor();
    if (look === 'light') await checkPage(watched, `account-profile-${look}`);
    const shown = {
      contacts: 'Available channels',
      access: 'Change e-mail address',
      sessions: 'this session',
      keys: look === 'light' ? 'No API keys yet' : 'Dashboard',
      usage: /of 10,000/,
      audit: 'Account created',
      delete: 'This cannot be undone',
    };
    for (const [section, text] of Object.entries(shown)) {
      await page.goto(`${world().url}/console/account/${section}`);
      await page.getByText(text).first().waitFor();
      if (section === 'keys' && look === 'light') {
        await press(page, 'Create API key');
        await page.getByRole('textbox', { name: 'Name' }).fill('Dashboard');
        await checkPage(watched, `account-key-${look}`);
        await inDialog(page, 'Create key');
        await page.getByText('Copy it now').waitFor();
      }
      if (section === 'contacts' && look === 'phone') {
        await press(page, 'Add contact');
        await checkPage(watched, `account-contact-${look}`);
        await page.keyboard.press('Escape');
      }
      if (look === 'light' || section === 'keys')
        await checkPage(watched, `account-${section}-${look}`);
    }
    await page.goto(`${world().url}/console/account/nothing`);
    await page.getByText('This page does not exist').waitFor();
    await page.context().close();
  });

  short('name and time zone are saved; errors are shown at their field', async () => {
    const { page, token } = await world().open('profile');
    await page.getByLabel('Name').fill('Ada');
    await page.getByLabel('Time zone').fill('Mars/Olympus');
    await press(page, 'Save');
    const zone = page.getByLabel('Time zone');
    await page.getByText('Unknown time zone').waitFor();
    expect(await zone.getAttribute('aria-invalid')).toBe('true');
    expect(await zone.and(page.locator(':focus')).count()).toBe(1);
    await press(page, "Use the browser's time zone");
    await press(page, 'Save');
    await page.getByText('Saved.').waitFor();
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(`${world().url}/v2/accounts`, { headers });
    expect(await response.json()).toMatchObject({ name: 'Ada', timeZone: 'Europe/Berlin' });
    await page.context().close();
  });

  short('a contact is added, confirmed by its mail, tested, and removed', async () => {
    const { page, own, watched } = await world().open('contacts', 'phone');
    await page.getByText('Nobody is notified yet').waitFor();
    await checkPage(watched, 'account-contacts-empty-phone');
    await press(page, 'Add contact');
    expect(await page.getByLabel('E-mail address').inputValue()).toBe(own.email);
    await inDialog(page, 'Add');
    await page.getByText('not confirmed').waitFor();
    const link = linkIn(await world().mail.mailTo(own.email), 'confirm');
    await page.goto(link);
    await page.getByRole('button').click();
    await page.goto(`${world().url}/console/account/contacts`);
    await page.getByText(own.email).first().waitFor();
    expect(await page.getByText('not confirmed').count()).toBe(0);
    await press(page, 'Send test to all');
    await page.getByText('The test message was delivered').waitFor();
    await world().mail.mailTo(own.email, ({ text }) => !text.includes('/confirm?'));
    await checkPage(watched, 'account-contacts-tried-phone');
    await press(page, `Remove ${own.email}`);
    await inDialog(page, 'Remove');
    await page.getByText('Nobody is notified yet').waitFor();
    await page.context().close();
  });

  long('a failing webhook says why; changing it keeps its secret', async () => {
    const receiver = createServer((_request, response) => response.writeHead(500).end());
    await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve));
    const { port } = receiver.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/hook`;
    const { page, watched } = await world().open('contacts', 'dark');
    await press(page, 'Add contact');
    await page.getByLabel('Webhook', { exact: true }).check({ force: true });
    await page.getByLabel('URL').fill(url.replace('http:', 'ftp:'));
    await inDialog(page, 'Add');
    await page.getByText('Enter an http or https URL').waitFor();
    await checkPage(watched, 'account-webhook-wrong-dark');
    await page.getByLabel('URL').fill(url);
    await inDialog(page, 'Add');
    await press(page, 'Show secret');
    const secret = await page.locator('.copy-text').innerText();
    await press(page, 'Send test to all');
    await page.getByText('the receiver did not answer with 2xx').waitFor();
    await press(page, `Change ${url}`);
    await page.getByLabel('Notify about alarms').selectOption('900000');
    await page.getByLabel('Only devices').fill('cellar, attic');
    await inDialog(page, 'Save');
    await page.getByText('only devices with cellar, attic').waitFor();
    await page.getByText('after 15 minutes').waitFor();
    expect(await page.locator('.copy-text').innerText()).toBe(secret);
    await checkPage(watched, 'account-webhook-dark');
    await page.context().close();
    receiver.close();
  });

  long('telephones that apps have added are counted, and removed together', async () => {
    const { page, token } = await world().open('contacts');
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ apn: [{ token: 'one' }, { token: 'two' }] });
    await fetch(`${world().url}/v2/accounts`, { method: 'PUT', headers, body });
    await press(page, 'Remove 2 phones');
    await inDialog(page, 'Remove');
    await page.getByText('The phones were removed.').waitFor();
    await page.getByText('Remove 2 phones').waitFor({ state: 'detached' });
    const contacts = await fetch(`${world().url}/v2/accounts/contacts`, { headers });
    expect(await contacts.json()).toMatchObject({ pushTokens: 0 });
    await page.context().close();
  });

  short('an API key is shown once, works, and is revoked', async () => {
    const { page } = await world().open('keys');
    await press(page, 'Create API key');
    await page.getByRole('textbox', { name: 'Name' }).fill('Dashboard');
    for (const box of await page.getByRole('checkbox').all()) await box.uncheck();
    await inDialog(page, 'Create key');
    await page.getByText('Choose at least one permission.').waitFor();
    await page.getByLabel(/^Read devices/).check();
    await inDialog(page, 'Create key');
    const key = await page.locator('.copy-text').innerText();
    expect(await world().statusOf(key)).toBe(200);
    await page.reload();
    await page.getByText('Dashboard').waitFor();
    expect(await page.content()).not.toContain(key);
    await press(page, 'Revoke Dashboard');
    await inDialog(page, 'Revoke');
    await page.getByText('No API keys yet').waitFor();
    expect(await world().statusOf(key)).toBe(401);
    await page.context().close();
  });

  long('actions are listed in pages, and by kind', async () => {
    const { page, token } = await world().open('audit');
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    for (const name of Array.from({ length: 55 }, (_, place) => `name ${place}`))
      await fetch(`${world().url}/v2/accounts`, {
        method: 'PUT',
        headers,
        body: JSON.stringify({ name }),
      });
    await page.reload();
    const rows = page.locator('.row');
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByText('Account created').waitFor();
    await page.getByLabel('Show').selectOption('logins');
    await expect.poll(() => rows.count()).toBe(1);
    expect(new URL(page.url()).search).toBe('?of=logins');
    await page.goBack();
    await page.getByText('Account created').waitFor();
    await page.context().close();
  });
});
