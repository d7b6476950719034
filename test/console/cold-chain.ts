import { expect } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { checkPage, type Watched } from './browser.ts';
import { names, rows } from './fleet-looks.ts';
import { connectDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { acceptProfile } from './filled.ts';
import { box, coldRoom } from './filled-data.ts';
import { addDevices } from './many.ts';
import { makeAccount, type TestService } from './service.ts';

export const carrier = { email: 'grace@example.com', password: 'correct horse' };

/**
 * An account with 500 boxes. All are connected, except one that was last heard four hours ago and one whose token is
 * wrong; one of the connected ones is warm, and sends that.
 */
export async function fillColdChain({ url }: TestService, db: Database) {
  const token = await makeAccount(url, carrier);
  const call = async <T>(path: string, body: unknown): Promise<T> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const response = await fetch(url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  await addDevices(db, { email: carrier.email, count: 498, onlineEvery: 1 });
  await db.query(
    `update presence set connected = false, last_seen_at = now() - interval '4 hours'
      where device_id = (select d.id from device d join account a on a.id = d.account_id
                          where d.name = 'Box 00217' and a.email = $1)`,
    [carrier.email],
  );
  const warm = await call<Registration>('/v2/devices', box('Box 00499', 'SN-499'));
  const refused = await call<Registration>('/v2/devices', box('Box 00500', 'SN-500'));
  const { deviceAuthUuid } = warm;
  const profile = { deviceAuthUuids: [deviceAuthUuid], purposes: [coldRoom] };
  await call('/v2/devices/profile', profile);
  const device = await connectDevice(warm);
  await acceptProfile(device);
  for (const val of [9.4, 9.7]) await device.publish('up/measurements', { sId: '0x10', val });
  const wrong = { ...refused, deviceAuthToken: warm.deviceAuthToken };
  await connectDevice(wrong).then(
    () => Promise.reject(new Error('A wrong token opened the door.')),
    () => undefined,
  );
  return { close: () => device.end() };
}

/** Finds three from the list of devices alone: the warm box, the silent one, and the one that is refused. */
export async function findThree(watched: Watched): Promise<void> {
  const { page } = watched;
  const chip = (name: RegExp) => page.locator('.chips').getByRole('link', { name });
  await chip(/^In alarm 1$/).click();
  await expect.poll(() => names(page)).toEqual(['Box 00499']);
  await rows(page)
    .getByText(/, since \d\d:\d\d$/)
    .waitFor();
  await rows(page).getByText('9.7 °C').waitFor();
  await checkPage(watched, 'cold-chain-warm');
  await chip(/^Not connected 2$/).click();
  await expect.poll(() => names(page)).toEqual(['Box 00217', 'Box 00500']);
  await rows(page).getByText('4 hr ago').waitFor();
  await checkPage(watched, 'cold-chain-silent');
  await rows(page)
    .getByText(/^Login refused, most recently at \d\d:\d\d$/)
    .waitFor();
  await chip(/^Login refused 1$/).click();
  await expect.poll(() => names(page)).toEqual(['Box 00500']);
  await checkPage(watched, 'cold-chain-refused');
  await chip(/^All 500$/).click();
  await page.getByText('1 to 50 of 500').waitFor();
  await checkPage(watched, 'cold-chain-all');
}
