import type { Browser, Page } from 'playwright-core';
import { testService, withConsole } from '../../journeys/service.ts';
import { startMailServer, type MailServer } from '../../support/smtp.ts';
import { openBrowser, openSignedIn, type Look, type Watched } from '../browser.ts';
import { consoleBuilt, makeAccount, type person } from '../service.ts';

export type Credentials = typeof person;

/** A page of somebody who is signed in. */
export type Opened = Watched & {
  watched: Watched;
  own: Credentials;
  /** The token of another session of the account. */
  token: string;
};

/** The service with a mail server, a browser, and people. */
export type World = {
  url: string;
  mail: MailServer;
  browser: Browser;
  /** Opens a section of the account page, signed in as a new person or with the given credentials. */
  open: (section: string, look?: Look, credentials?: Credentials) => Promise<Opened>;
  /** The status of a request with the token. */
  statusOf: (token: string) => Promise<number>;
  canEnter: (credentials: Credentials) => Promise<boolean>;
  close: () => Promise<void>;
};

export async function startWorld(): Promise<World> {
  const mail = await startMailServer();
  const service = await testService(
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
  const { url } = service;
  const browser = await openBrowser();
  await makeAccount(url);
  await consoleBuilt(url);
  let people = 0;
  return {
    url,
    mail,
    browser,
    async open(section, look = 'light', credentials) {
      const made = { email: `owner-${++people}@example.org`, password: 'correct horse' };
      const own = credentials ?? made;
      const path = `account/${section}`;
      const token = credentials ? '' : await makeAccount(url, own);
      const watched = await openSignedIn(browser, look, { url, credentials: own, path });
      await watched.page.locator('.account').waitFor();
      return { ...watched, watched, own, token };
    },
    async statusOf(token) {
      const headers = { Authorization: `Bearer ${token}` };
      return (await fetch(`${url}/v2/devices`, { headers })).status;
    },
    async canEnter(credentials) {
      const response = await fetch(`${url}/v2/accounts/login`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(credentials),
      });
      return response.ok;
    },
    async close() {
      await browser.close();
      await service.close();
      await mail.close();
    },
  };
}

export const press = (page: Page, name: string | RegExp): Promise<void> =>
  page.getByRole('button', { name, exact: typeof name === 'string' }).click();

export const inDialog = (page: Page, name: string): Promise<void> =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
