import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserPath, checkPage, openBrowser, openPage, signIn } from './browser.ts';
import { createHuman, sayFigure } from './human.ts';
import { publish } from './publish.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

/** Everything that scripts could read or that is stored in the browser. */
const keptIn = (page: Page) =>
  page.evaluate(
    'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])',
  ) as Promise<string>;

describe.skipIf(browserPath === null)('in a browser', () => {
  let browser: Browser;
  let service: TestService;
  let strict: TestService;

  beforeAll(async () => {
    // One after the other: each must reach its database in time on a busy machine.
    service = await consoleService();
    strict = await consoleService((config) => ({
      ...config,
      accounts: {
        ...config.accounts,
        openRegistration: false,
        failedLogins: {
          ...config.accounts.failedLogins,
          perAccount: { attempts: 1, windowSeconds: 30 },
        },
      },
    }));
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await Promise.all([service?.close(), strict?.close()]);
  });

  test('from a fresh start to the first measurement, and out again', async () => {
    const watched = await openPage(browser, 'light');
    const { page } = watched;
    const human = createHuman(page);
    await page.goto(service.url);
    await human.waitFor(page.getByRole('heading', { name: 'Create the first account' }));
    expect(page.url()).toBe(`${service.url}/console/`);
    await checkPage(watched, 'first-run-light');
    await human.type(page.getByLabel('E-mail address'), person.email);
    await human.type(page.getByLabel('Password', { exact: true }), person.password);
    await human.click(page.getByRole('button', { name: 'Create account' }));

    await human.waitFor(page.getByText('No devices yet'));
    await checkPage(watched, 'fleet-empty-light');
    await human.click(page.locator('main').getByRole('link', { name: 'Add device' }));
    await human.waitFor(page.getByLabel('Freezer'));
    await human.click(page.getByLabel('Freezer'));
    await human.type(page.getByLabel('Name'), 'Freezer 3');
    await human.click(page.getByRole('button', { name: 'Add the device' }));

    await human.waitFor(page.getByText('Waiting for the first message'));
    await checkPage(watched, 'connect-light');
    expect(await page.locator('.copy-text').innerText()).toContain('•');
    await page.getByRole('button', { name: 'Show password' }).click();
    await page.locator('canvas.qr').waitFor();
    const command = (await page.locator('.copy-text').innerText()).replaceAll('\\\n', ' ');
    await publish(command, (message) => message.replace('0x10', '0x77'));
    await page.getByText('has no sensor 0x77').waitFor();
    // After copying: switch to the terminal, paste the line, press Enter.
    await human.click(page.getByRole('button', { name: 'Copy' }));
    human.act(3);
    await publish(command, (message) => message);
    await human.waitFor(page.getByText('It works. The first value is stored.'));
    const figure = human.figure();
    sayFigure('From a fresh start to the first measurement on the screen', figure);
    expect(figure.seconds).toBeLessThan(120);
    await page.getByText('-18.2').first().waitFor();
    await checkPage(watched, 'connect-done-light');

    await page.getByRole('link', { name: 'Open the device' }).click();
    await page.getByRole('heading', { name: 'Freezer 3' }).waitFor();
    await page.locator('.card').getByText('-18.2').waitFor();
    expect(await keptIn(page)).toBe('["",{},{}]');

    const other = await page.context().newPage();
    await other.goto(`${service.url}/console/alarms`);
    await other.getByText('Nothing is being watched').waitFor();
    await page.locator('.foot summary').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    for (const each of [page, other]) await each.getByLabel('E-mail address').waitFor();
    expect(watched.faults).toEqual([]);
  });

  test('an ended session leads to the sign-in page, and back to the same place', async () => {
    const person = { email: 'grace@example.com', password: 'correct horse' };
    const token = await makeAccount(service.url, person);
    const { page } = await openPage(browser, 'phone', { locale: 'de-DE' });
    // A new account has English until somebody chooses.
    await page.goto(`${service.url}/console/`);
    await page.getByRole('heading', { name: 'Anmelden' }).waitFor();
    await signIn(page, service.url, person);
    await page.goto(`${service.url}/console/alarms?state=closed`);
    await page.getByText('No closed alarms yet').waitFor();
    await endSessions(service.url, token);
    await page.reload();
    await page.getByLabel('E-Mail-Adresse').fill(person.email);
    await page.getByLabel('Passwort', { exact: true }).fill(person.password);
    await page.getByRole('button', { name: 'Anmelden' }).click();
    await page.getByText('No closed alarms yet').waitFor();
    expect(page.url()).toContain('alarms?state=closed');
  });

  test('the page shows a refused login, and counts down if there were too many', async () => {
    const watched = await openPage(browser, 'dark');
    const { page } = watched;
    await page.goto(`${strict.url}/console/`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.getByText('Create an account').count()).toBe(0);
    const enter = page.getByRole('button', { name: 'Sign in' });
    await page.getByLabel('E-mail address').fill(person.email);
    await page.getByLabel('Password', { exact: true }).fill('a wrong one');
    await enter.click();
    await page.getByText('The e-mail address or password is wrong.').waitFor();
    await checkPage(watched, 'sign-in-wrong-dark');
    await enter.click();
    await page.getByText(/Too many attempts. Try again in \d+ s./).waitFor();
    expect(await enter.isDisabled()).toBe(true);
  });
});

/** All except that of the token. */
async function endSessions(url: string, token: string): Promise<void> {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/v2/accounts/sessions`, { headers });
  const { sessions } = (await response.json()) as { sessions: { id: string; current: boolean }[] };
  for (const { id, current } of sessions)
    if (!current) await fetch(`${url}/v2/accounts/sessions/${id}`, { method: 'DELETE', headers });
}
