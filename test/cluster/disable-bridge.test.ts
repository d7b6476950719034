import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canOpenBroker, openBroker } from '../support/mosquitto.ts';
import type { OpenBroker } from '../support/mosquitto.ts';
import { runOn } from '../support/template.ts';
import { configuration, openApp } from '../journeys/app.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { runProgram } from '../journeys/process.ts';
import { testService } from '../journeys/service.ts';
import type { TestService } from '../journeys/service.ts';
import { bridgeTo } from './broker.ts';

/** Messages that the bridge refused, which it reports to other processes every 5 s. */
async function countRefused(databaseUrl: string): Promise<number> {
  const { rows } = await runOn(databaseUrl, (client) =>
    client.query<{ refused: number }>('select refused::int from bridge_status'),
  );
  return rows[0]?.refused ?? 0;
}

describe.skipIf(!canOpenBroker)('a device behind a broker that continues to accept it', () => {
  let broker: OpenBroker;
  let service: TestService;
  beforeAll(async () => {
    broker = await openBroker();
    const connectors = [bridgeTo(broker, 2)];
    service = await testService({}, { change: (config) => ({ ...config, connectors }) });
  });
  afterAll(async () => {
    await service.close();
    await broker.close();
  });

  it('is ignored while its account is disabled, and served again afterwards', async () => {
    const app = await openApp(service.url);
    const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    const { deviceAuthUuid: uuid } = registration;
    const device = await connectDevice(registration);
    const ts = Date.now() - 10_000;
    const publish = (val: number) =>
      device.publish('up/measurements', { sId: '0x02', val, ts: ts + val });
    const stored = async () => {
      const { rows } = await runOn(service.databaseUrl, (client) =>
        client.query<{ val: number }>(
          `select m.val from measurement m join series s on s.id = m.series_id
             join device d on d.id = s.device_id where d.uuid = $1 order by m.ts`,
          [uuid],
        ),
      );
      return rows.map(({ val }) => val);
    };
    const operate = async (command: string) => {
      const env = {
        DATABASE_URL: service.databaseUrl,
        SECRET: 'a secret that only this test knows, long enough',
      };
      const args = ['src/cli/account.ts', command, app.email];
      const program = runProgram(process.execPath, args, { env });
      expect([await program.ended(), program.stderr()]).toEqual([0, '']);
    };
    await publish(1);
    await expect.poll(stored).toEqual([1]);
    await operate('disable');
    // What comes before the bridge has noticed is stored; from then on nothing is.
    let val = 1;
    const refused = async () => {
      val += 1;
      await publish(val);
      return countRefused(service.databaseUrl);
    };
    await expect.poll(refused, { timeout: 60_000 }).toBeGreaterThan(0);
    const accounted = async () =>
      (await stored()).length + (await countRefused(service.databaseUrl));
    await expect.poll(accounted, { timeout: 60_000 }).toBe(val);
    const before = await stored();
    expect(before).toEqual(Array.from({ length: before.length }, (_, place) => place + 1));
    await operate('enable');
    const heard = async () => {
      await publish(1_000);
      return stored();
    };
    await expect.poll(heard, { timeout: 60_000 }).toEqual([...before, 1_000]);
    await device.end();
  });
});
