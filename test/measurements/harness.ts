import { expect } from 'vitest';
import { createKnownSeries, storeMeasurements } from '../../src/measurements/store.ts';
import * as app from '../events/app.ts';

type StoredMeasurement = Parameters<typeof storeMeasurements>[1][number];
export type Point = { sId: string; ts: number; val: number | { lat: number; long: number } };

/** Stores measurements of a device, and lists them as an app does. */
export function pointsIn(history: () => app.OwnHistory) {
  const known = createKnownSeries();
  const pathOf = (device: app.Device, query = '') => `/v2/measurements/${device.uuid}?${query}`;
  return {
    known,
    pathOf,
    /** Returns the values for which there was no place left. */
    async store(device: app.Device, ...rows: Omit<StoredMeasurement, 'deviceId'>[]) {
      const owned = rows.map((row) => ({ ...row, deviceId: device.deviceId }));
      const { db } = history();
      const crowded = await db.transaction((tx) => storeMeasurements(tx, owned, known));
      return crowded.map(({ val }) => val);
    },
    /** Another device of the same account. */
    async addDevice(accountId: number, labels: string[] = []): Promise<app.Device> {
      const device = await app.newDevice(history().db);
      await history().db.query('update device set account_id = $1, labels = $2 where id = $3', [
        accountId,
        labels,
        device.deviceId,
      ]);
      return { ...device, accountId };
    },
    async list(device: app.Device, query = ''): Promise<Point[]> {
      const body = await history().json(pathOf(device, query), device.accountId);
      expect(body['timestamp']).toEqual(expect.any(Number));
      return body['measurements'] as Point[];
    },
    async walk(device: app.Device, query: string): Promise<Point[]> {
      const all: Point[] = [];
      let at: string | null = pathOf(device, query);
      while (at !== null) {
        const response: Response = await history().get(at, device.accountId);
        expect(response.status).toBe(200);
        all.push(...((await response.json()) as { measurements: Point[] }).measurements);
        at = app.nextOf(response);
      }
      return all;
    },
  };
}
