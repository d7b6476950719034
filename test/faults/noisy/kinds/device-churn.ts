import { anySense, flood } from '../devices.ts';
import type { EnemyDevice } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const readings = JSON.stringify(
  Array.from({ length: 500 }, (_, n) => ({ sId: '0x01', val: n, ts: Date.now() - 1_000_000 + n })),
);

export const deviceChurn: NoisyKind = {
  name: 'device-churn',
  says: 'registers devices that send 500 measurements, and removes them',
  setUp: async (enemy) => (signal) =>
    work(8, signal, async () => {
      const made = await enemy.ask('POST', '/v2/devices', { body: anySense });
      if (made.status !== 200) return;
      const { deviceAuthUuid: uuid, deviceAuthToken: token } = JSON.parse(made.text) as {
        deviceAuthUuid: string;
        deviceAuthToken: string;
      };
      const devices: EnemyDevice[] = [{ uuid, token }];
      const sent = new AbortController();
      const payload = (_device: number, seq: number) => {
        if (seq < 1) return readings;
        sent.abort();
        return null;
      };
      const over = AbortSignal.any([signal, sent.signal, AbortSignal.timeout(2_000)]);
      await flood(enemy, { devices, inFlight: 1, payload }, over);
      await enemy.ask('DELETE', `/v2/devices/${uuid}`);
    }),
};
