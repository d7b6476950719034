import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { linkIn } from '../contacts/people.ts';
import { testService, withConsole } from '../journeys/service.ts';
import { startMailServer, type MailServer } from '../support/smtp.ts';
import { browserPath, checkPage, openBrowser, openPage, signIn, type Look } from './browser.ts';
import { createHuman, sayFigure } from './human.ts';
import { publish } from './publish.ts';
import { makeAccount, person, type TestService } from './service.ts';

describe.skipIf(browserPath === null)('the account', () => {
  let mail: MailServer;
  let service: TestService;
  let browser: Browser;

  beforeAll(async () => {
    mail = await startMailServer();
    service = await testService(
      { SMTP_URL: mail.url },
      {
        change: (config) =>
          withConsole({
            ...config,
            notifications: {
              ...config.notifications,
              pollIntervalMs: 200,
              webhooks: { ...config.notifications.webhooks, allowPrivateAddresses: true },
            },
          }),
      },
    );
    browser = await openBrowser();
    await makeAccount(service.url);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
    await mail?.close();
  });

  let people = 0;
  /** A person with an account, signed in at a section of its page. */
  const open = async (section: string, look: Look = 'light', credentials?: typeof person) => {
    const own = credentials ?? {
      email: `owner-${++people}@example.org`,
      password: 'correct horse',
    };
    const token = credentials ? '' : await makeAccount(service.url, own);
    const watched = await openPage(browser, look);
    await signIn(watched.page, service.url, own);
    await watched.page.goto(`${service.url}/console/account/${section}`);
    await watched.page.locator('.account').waitFor();
    return { ...watched, watched, own, token };
  };
  const statusOf = async (token: string) => {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${service.url}/v2/devices`, { headers })).status;
  };
  const canEnter = async (credentials: typeof person) => {
    const response = await fetch(`${service.url}/v2/accounts/login`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(credentials),
    });
    return response.ok;
  };
  const press = (page: Page, name: string | RegExp) =>
    page.getByRole('button', { name, exact: typeof name === 'string' }).click();
  const inDialog = (page: Page, name: string) =>
    page.getByRole('dialog').getByRole('button', { name, exact: true }).click();

  test.each(['light', 'dark', 'phone'] as const)('each section has a URL, %s', async (look) => {
    const { page, watched } = await open('', look, person);
    if (look === 'phone') {
      await checkPage(watched, `account-list-${look}`);
      await page.getByRole('link', { name: 'Profile' }).click();
    }
    await page.getByLabel('Time zone').waitFor();
    await checkPage(watched, `account-profile-${look}`);
    const shown = {
      contacts: 'What this installation can send',
      access: 'Change the e-mail address',
      sessions: 'this one',
      keys: look === 'light' ? 'No key yet' : 'Dashboard',
      usage: /of 10,000/,
      audit: 'Account made',
      delete: 'This cannot be undone',
    };
    for (const [section, text] of Object.entries(shown)) {
      // The same parts in other colours: a few of them show all colours that there are.
      if (look === 'dark' && !['contacts', 'usage', 'delete'].includes(section)) continue;
      await page.goto(`${service.url}/console/account/${section}`);
      await page.getByText(text).first().waitFor();
      if (section === 'keys' && look === 'light') {
        await press(page, 'Make a key');
        await page.getByRole('textbox', { name: 'Name' }).fill('Dashboard');
        await checkPage(watched, `account-key-${look}`);
        await inDialog(page, 'Make the key');
        await page.getByText('Copy it now').waitFor();
      }
      if (section === 'contacts' && look === 'phone') {
        await press(page, 'Add contact');
        await checkPage(watched, `account-contact-${look}`);
        await page.keyboard.press('Escape');
      }
      await checkPage(watched, `account-${section}-${look}`);
    }
    await page.goto(`${service.url}/console/account/nothing`);
    await page.getByText('There is no such page').waitFor();
    await page.context().close();
  });

  test('name and time zone are kept; what is wrong is said at its field', async () => {
    const { page, token } = await open('profile');
    await page.getByLabel('Name').fill('Ada');
    await page.getByLabel('Time zone').fill('Mars/Olympus');
    await press(page, 'Save');
    const zone = page.getByLabel('Time zone');
    await page.getByText('There is no such time zone').waitFor();
    expect(await zone.getAttribute('aria-invalid')).toBe('true');
    expect(await zone.evaluate((field) => field === document.activeElement)).toBe(true);
    await press(page, "This device's");
    await press(page, 'Save');
    await page.getByText('Saved.').waitFor();
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(`${service.url}/v2/accounts`, { headers });
    expect(await response.json()).toMatchObject({ name: 'Ada', timeZone: 'Europe/Berlin' });
    await page.context().close();
  });

  test('a contact is added, confirmed by its mail, tried, and removed', async () => {
    const { page, own, watched } = await open('contacts', 'phone');
    await page.getByText('Nobody is told yet').waitFor();
    await checkPage(watched, 'account-contacts-empty-phone');
    await press(page, 'Add contact');
    expect(await page.getByLabel('E-mail address').inputValue()).toBe(own.email);
    await inDialog(page, 'Add');
    await page.getByText('not confirmed').waitFor();
    const link = linkIn(await mail.mailTo(own.email), 'confirm');
    await page.goto(link);
    await page.getByRole('button').click();
    await page.goto(`${service.url}/console/account/contacts`);
    await page.getByText(own.email).first().waitFor();
    expect(await page.getByText('not confirmed').count()).toBe(0);
    await press(page, 'Send a trial to all');
    await page.getByText('The trial was delivered').waitFor();
    await mail.mailTo(own.email, ({ text }) => !text.includes('/confirm?'));
    await checkPage(watched, 'account-contacts-tried-phone');
    await press(page, `Remove ${own.email}`);
    await inDialog(page, 'Remove');
    await page.getByText('Nobody is told yet').waitFor();
    await page.context().close();
  });

  test('a webhook that fails says why; what is changed of it keeps its secret', async () => {
    const receiver = createServer((_request, response) => response.writeHead(500).end());
    await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve));
    const { port } = receiver.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/hook`;
    const { page, watched } = await open('contacts', 'dark');
    await press(page, 'Add contact');
    await page.getByLabel('Webhook', { exact: true }).check({ force: true });
    await page.getByLabel('URL').fill(url.replace('http:', 'ftp:'));
    await inDialog(page, 'Add');
    await page.getByText('Expected a URL').waitFor();
    await checkPage(watched, 'account-webhook-wrong-dark');
    await page.getByLabel('URL').fill(url);
    await inDialog(page, 'Add');
    await press(page, 'Show the secret');
    const secret = await page.locator('.copy-text').innerText();
    await press(page, 'Send a trial to all');
    await page.getByText('the receiver did not answer with 2xx').waitFor();
    await press(page, `Change ${url}`);
    await page.getByLabel('Told of alarms').selectOption('900000');
    await page.getByLabel('Only devices').fill('cellar, attic');
    await inDialog(page, 'Save');
    await page.getByText('only devices with cellar, attic').waitFor();
    await page.getByText('after 15 minutes').waitFor();
    expect(await page.locator('.copy-text').innerText()).toBe(secret);
    await checkPage(watched, 'account-webhook-dark');
    await page.context().close();
    receiver.close();
  });

  test('an API key is shown once, works, and is revoked', async () => {
    const { page } = await open('keys');
    await press(page, 'Make a key');
    await page.getByRole('textbox', { name: 'Name' }).fill('Dashboard');
    for (const box of await page.getByRole('checkbox').all()) await box.uncheck();
    await inDialog(page, 'Make the key');
    await page.getByText('Choose at least one.').waitFor();
    await page.getByLabel(/^Read devices/).check();
    await inDialog(page, 'Make the key');
    const key = await page.locator('.copy-text').innerText();
    expect(await statusOf(key)).toBe(200);
    await page.reload();
    await page.getByText('Dashboard').waitFor();
    expect(await page.content()).not.toContain(key);
    await press(page, 'Revoke Dashboard');
    await inDialog(page, 'Revoke');
    await page.getByText('No key yet').waitFor();
    expect(await statusOf(key)).toBe(401);
    await page.context().close();
  });

  test('sessions say where they began, and are ended', async () => {
    const { page, own, token } = await open('sessions');
    const rows = page.locator('.row');
    await page.getByText('Chrome on Linux').waitFor();
    await page.getByText('127.0.0.1').first().waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    const other = await open('sessions', 'light', own);
    await page.reload();
    await expect.poll(() => rows.count()).toBe(3);
    await press(page, 'End the 2 other sessions');
    await inDialog(page, 'End it');
    await expect.poll(() => rows.count()).toBe(1);
    expect(await statusOf(token)).toBe(401);
    await other.page.reload();
    await other.page.getByLabel('E-mail address').waitFor();
    await page.locator('.row').getByRole('button', { name: 'Sign out' }).click();
    await inDialog(page, 'End it');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.context().close();
    await other.page.context().close();
  });

  test('the password is changed: all else is signed out, this page stays', async () => {
    const { page, own, token } = await open('access');
    const change = async (old: string) => {
      await page.getByLabel('Current password', { exact: true }).fill(old);
      await page.getByLabel('New password', { exact: true }).fill('battery staple');
      await press(page, 'Change the password');
    };
    await change('a wrong one');
    await page.getByText('The password is wrong.').waitFor();
    await change(own.password);
    await page.getByText('The password was changed.').waitFor();
    expect(await statusOf(token)).toBe(401);
    expect(await canEnter({ ...own, password: 'battery staple' })).toBe(true);
    await page.reload();
    await page.getByRole('heading', { name: 'Password and e-mail' }).waitFor();
    await page.context().close();
  });

  test('the e-mail address is changed by a link that is sent to the new one', async () => {
    const { page, own } = await open('access');
    const email = `new-${own.email}`;
    await page.getByLabel('New e-mail address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(own.password);
    await press(page, 'Send the link');
    await page.getByText(`A link was sent to ${email}`).waitFor();
    await page.goto(linkIn(await mail.mailTo(email), 'confirm-email'));
    await page.getByRole('button').click();
    await page.goto(`${service.url}/console/`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await signIn(page, service.url, { ...own, email });
    await page.context().close();
  });

  test('a forgotten password: asked for, set by the link, sessions ended, signed in', async () => {
    const { page: signedIn, own, token } = await open('profile');
    const { page, faults } = await openPage(browser, 'phone');
    await page.goto(`${service.url}/console/`);
    await press(page, 'Forgotten password?');
    await page.getByLabel('E-mail address').fill(own.email);
    await press(page, 'Send the mail');
    await page.getByText(`If ${own.email} has an account here`).waitFor();
    await page.goto(linkIn(await mail.mailTo(own.email), 'reset'));
    await page.locator('input[type=password]').fill('a new password');
    await page.getByRole('button').click();
    await page.getByRole('link').click();
    expect(await statusOf(token)).toBe(401);
    await signIn(page, service.url, { ...own, password: 'a new password' });
    await signedIn.reload();
    await signedIn.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
    await signedIn.context().close();
  });

  test('what was done is listed in pages, and by kind', async () => {
    const { page, token } = await open('audit');
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    for (const name of Array.from({ length: 55 }, (_, place) => `name ${place}`))
      await fetch(`${service.url}/v2/accounts`, {
        method: 'PUT',
        headers,
        body: JSON.stringify({ name }),
      });
    await page.reload();
    const rows = page.locator('.row');
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByText('Account made').waitFor();
    await page.getByLabel('Show').selectOption('logins');
    await expect.poll(() => rows.count()).toBe(1);
    expect(new URL(page.url()).search).toBe('?of=logins');
    await page.goBack();
    await page.getByText('Account made').waitFor();
    await page.context().close();
  });

  test('the account is deleted with its password, asked twice', async () => {
    const { page, own } = await open('delete');
    const password = page.getByLabel('Password', { exact: true });
    const ask = async (text: string) => {
      await password.fill(text);
      await press(page, 'Delete account');
    };
    await ask(own.password);
    await inDialog(page, 'Cancel');
    await ask('a wrong one');
    await inDialog(page, 'Delete for good');
    await page.getByText('The password is wrong.').waitFor();
    expect(await canEnter(own)).toBe(true);
    await ask(own.password);
    await inDialog(page, 'Delete for good');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await canEnter(own)).toBe(false);
    await page.context().close();
  });

  test('somebody with one hive, on a phone, in German: to an alarm that told them', async () => {
    const own = { email: 'imkerin@example.org', password: 'Lindenblüte im Juni' };
    const watched = await openPage(browser, 'phone', { locale: 'de-DE' });
    const { page } = watched;
    const human = createHuman(page);
    const button = (name: string) => page.getByRole('button', { name, exact: true });
    const step = (name: string) => checkPage(watched, `hive-${name}`);
    await page.goto(service.url);
    await human.waitFor(page.getByRole('heading', { name: 'Anmelden' }));
    await human.click(button('Ein Konto anlegen'));
    await human.type(page.getByLabel('E-Mail-Adresse'), own.email);
    await human.type(page.getByLabel('Passwort', { exact: true }), own.password);
    await step('1-register');
    await human.click(button('Konto anlegen'));
    await human.waitFor(page.getByText('Noch kein Gerät'));
    await step('2-empty');
    await human.click(page.locator('main').getByRole('link', { name: 'Neues Gerät' }));
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

    await human.click(page.getByRole('link', { name: 'Alarme einrichten' }));
    await human.waitFor(page.getByText('Noch niemand.'));
    await human.type(page.getByLabel(/^Gewicht: unter/), '30');
    await step('6-alarm');
    await human.click(button('Alarme speichern'));
    await human.waitFor(page.getByText('Gespeichert.'));
    await human.waitFor(page.getByText('Noch wird niemand benachrichtigt'));
    await human.click(button('Kontakt hinzufügen'));
    await human.click(button('Hinzufügen'));
    await human.waitFor(page.getByText('nicht bestätigt'));
    await step('8-contact');
    // The mail program opens a tab of its own.
    const tab = await page.context().newPage();
    await tab.goto(linkIn(await mail.mailTo(own.email), 'confirm'));
    human.act(2);
    await tab.getByRole('button', { name: 'Bestätigen' }).click();
    await tab.getByRole('heading', { name: 'Bestätigt' }).waitFor();
    await tab.close();
    await page.getByText('nicht bestätigt').waitFor({ state: 'detached' });
    await human.click(button('Versuch an alle senden'));
    await human.waitFor(page.getByText('Der Versuch wurde zugestellt'));
    await step('9-tried');

    await publish(command, (message) => message.replace('38.4', '38.2'));
    await publish(command, (message) => message.replace('38.4', '21.5'));
    human.act(2);
    const told = await mail.mailTo(own.email, ({ text }) => text.includes('21,5'));
    expect(told.headers['subject']).toContain('Volk an der Linde');
    await human.click(page.getByRole('link', { name: /^Alarme/ }));
    await human.waitFor(page.getByText(/Gewicht unter 30,00/));
    await page.getByText(own.email).first().waitFor();
    await step('10-alarms');
    sayFigure('A hive: to an alarm that told somebody', human.figure());
    await page.context().close();
  });

  test('signing in and registering say what is wrong at its field', async () => {
    const watched = await openPage(browser, 'light', { locale: 'de-DE' });
    const { page } = watched;
    await page.goto(`${service.url}/console/`);
    const password = page.getByLabel('Passwort', { exact: true });
    await page.getByLabel('E-Mail-Adresse').fill(person.email);
    await password.fill('a wrong one');
    await press(page, 'Passwort zeigen');
    expect(await password.getAttribute('type')).toBe('text');
    await press(page, 'Anmelden');
    await page.getByText('Die E-Mail-Adresse oder das Passwort ist falsch.').waitFor();
    expect(await password.getAttribute('aria-invalid')).toBe('true');
    expect(await password.getAttribute('autocomplete')).toBe('current-password');
    await press(page, 'Ein Konto anlegen');
    expect(await password.getAttribute('autocomplete')).toBe('new-password');
    await page.getByLabel('E-Mail-Adresse').fill(person.email);
    await password.fill('long enough');
    await press(page, 'Konto anlegen');
    await page.getByText('Es gibt schon ein Konto mit dieser Adresse.').waitFor();
    await checkPage(watched, 'sign-in-taken-light');
    await page.context().close();
  });
});
