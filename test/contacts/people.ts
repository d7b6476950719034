import { expect } from 'vitest';
import type { App } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { startMailServer, type Mail, type MailServer } from '../support/smtp.ts';

export type Email = {
  address: string;
  confirmed: boolean;
  labels: string[];
  last?: { state: string };
};
export type Contacts = { emails: Email[]; channels: Record<string, boolean> };

export type MailedService = { mail: MailServer; service: TestService; close(): Promise<void> };

/** The whole service with a mail server; an account has at most four contacts. */
export async function startMailedService(): Promise<MailedService> {
  const mail = await startMailServer((to) => (to.startsWith('refused') ? 550 : undefined));
  const service = await testService(
    { SMTP_URL: mail.url },
    {
      change: (config) => ({
        ...config,
        notifications: { ...config.notifications, pollIntervalMs: 200 },
        quotas: { ...config.quotas, contacts: 4 },
      }),
    },
  );
  return {
    mail,
    service,
    async close() {
      await service.close();
      await mail.close();
    },
  };
}

let people = 0;
export const newAddress = () => `person-${++people}@example.org`;

export const putEmails = (app: App, ...emails: object[]) =>
  app.call<Contacts>('PUT', '/v2/accounts/contacts', { emails });
export const getContacts = (app: App) => app.call<Contacts>('GET', '/v2/accounts/contacts');

export function linkIn({ text }: Mail, purpose: string): string {
  const link = new RegExp(`http://\\S+/${purpose}\\?token=[\\w-]+`).exec(text)?.[0];
  if (link === undefined) throw new Error(`No link to /${purpose} in: ${text}`);
  return link;
}

/** An address that is confirmed the way a person does it. */
export async function givenConfirmed(
  mail: MailServer,
  app: App,
  entry: object = {},
): Promise<string> {
  const address = newAddress();
  await putEmails(app, { address, ...entry });
  const link = linkIn(await mail.mailTo(address), 'confirm');
  expect((await fetch(link, { method: 'POST' })).status).toBe(200);
  return address;
}
