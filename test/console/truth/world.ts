import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import type { Purpose } from '../../../src/contract/purpose.ts';
import type { Registration } from '../../journeys/app.ts';
import { runOn } from '../../support/template.ts';
import { openBrowser, openSignedIn } from '../browser.ts';
import { callAs, fill, person, type Call, type Filled } from '../filled.ts';
import { consoleService, makeAccount, type TestService } from '../service.ts';

export const temperature = {
  sId: '0x10',
  name: 'Temperature',
  unit: '°C',
  decimals: 1,
  min: -40,
  max: 85,
};
export const door = { sId: '0x11', name: 'Door open', min: 0, max: 1, decimals: 0 };

/** A service with the devices of `fill`, and a browser, for the tests of a file. */
export function useWorld() {
  let service: TestService;
  let browser: Browser;
  let filled: Filled;
  let own: Call;
  let token = '';

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    filled = await fill(service);
    type Login = { accountAuthToken: string };
    const login = await callAs(service.url, '')<Login>('POST', '/v2/accounts/login', person);
    token = login.accountAuthToken;
    own = callAs(service.url, token);
  });
  afterAll(async () => {
    await browser?.close();
    await filled?.close();
    await service?.close();
  });

  const call: Call = (...asked) => own(...asked);

  /** A page of `person`, who is signed in. */
  const open = async (path: string) => {
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', { url, credentials: person, path });
    onTestFinished(() => watched.page.context().close());
    return watched;
  };

  /** An account of its own, and a page of it. */
  const openOwn = async (path: string) => {
    const credentials = { email: `own-${randomUUID()}@example.com`, password: 'correct horse' };
    const own = callAs(service.url, await makeAccount(service.url, credentials));
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', { url, credentials, path });
    onTestFinished(() => watched.page.context().close());
    return { own, ...watched };
  };

  /** A device over HTTP with these senses; sends values as it. */
  async function addDevice(name: string, senses: object[]) {
    const body = { protocol: 'http', device: { name }, module: [{ moduleId: 'm', senses }] };
    const device = await call<Registration>('POST', '/v2/devices', body);
    const { deviceAuthUuid: uuid, deviceAuthToken } = device;
    const sendRaw = (topic: string, body: string) =>
      fetch(`${service.url}/devices/${uuid}/up/${topic}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${deviceAuthToken}`, 'Content-Type': 'application/json' },
        body,
      });
    const send = async (...values: object[]) =>
      expect((await sendRaw('measurements', JSON.stringify(values))).status).toBe(200);
    return { uuid, send, sendRaw };
  }

  return {
    url: () => service.url,
    uuids: () => filled.uuids,
    token: () => token,
    sqlRun: (text: string, values: unknown[]) =>
      runOn(service.databaseUrl, (client) => client.query(text, values)),
    call,
    open,
    openOwn,
    addDevice,
  };
}

export type Installed = {
  currentProfile: { purposes: Purpose[] };
  pendingProfile: { purposes?: Purpose[] };
};

/** The thresholds of a device's newest profile, by event. */
export async function limitsOf(call: Call, uuid: string) {
  const found = await call<Installed>('GET', `/v2/devices/${uuid}/configuration`);
  const { purposes } = found.pendingProfile.purposes ? found.pendingProfile : found.currentProfile;
  return (purposes ?? []).flatMap(({ states }) =>
    states.flatMap(({ events }) =>
      events.map(({ name, causes }) => [name, causes[0]?.thresholds, causes[0]?.threshold?.forMs]),
    ),
  );
}
