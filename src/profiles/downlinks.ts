import type { Bus } from '../bus/bus.ts';
import type { DeviceIdentity, Downlink, DueTopic } from '../contract/uplink.ts';
import type { DownTopic } from '../contract/topic.ts';
import { coalesce } from '../lib/coalesce.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { listDueDownlinks, markDelivered, rememberAnswering } from './downlink-queries.ts';
import type { DueDownlinkRow } from './downlink-queries.ts';
import { forgetSeen, listKept, type SeenDisplays } from './kept-displays.ts';

export type Downlinks = {
  /** What a device that subscribed to these topics is sent now. Rejects with `device-gone` or `unavailable`. */
  subscribed(device: DeviceIdentity, topics: DownTopic[]): Promise<Downlink[]>;
  /** What is due for a connected device after a notice. */
  due(device: DeviceIdentity, topic: DueTopic): Promise<Downlink[]>;
  /** The device has a message; a profile that waited for it is `sent`, a text is kept no longer. */
  delivered(device: DeviceIdentity, message: Downlink): Promise<void>;
  /** Has the device's connections, wherever they are, hand over the profile that is due. */
  handOver(device: DeviceIdentity): Promise<void>;
};

/** Messages to devices, always read from the database: nothing is retained or queued anywhere else. */
export function createDownlinks({ db, bus }: { db: Sql; bus: Bus }): Downlinks {
  // Each row may hold a large profile.
  const rows = coalesce({
    load: (ids: number[]) => listDueDownlinks(db, ids),
    maxKeys: 100,
    parallel: 2,
  });
  const kept = coalesce({ load: (ids: number[]) => listKept(db, ids), parallel: 2 });
  const seen = coalesce({
    load: async (displays: SeenDisplays[]) => {
      await forgetSeen(db, displays);
      return new Map<SeenDisplays, true>();
    },
  });

  async function getDue(device: DeviceIdentity): Promise<DueDownlinkRow> {
    const row = await rows.find(device.deviceId);
    if (!row) throw new DomainError('device-gone', 'The device was removed.');
    return row;
  }

  /** Behind the state that they may speak of. */
  async function subscribed(device: DeviceIdentity, topics: DownTopic[]): Promise<Downlink[]> {
    const [messages, texts] = await Promise.all([
      readDue(device, topics),
      topics.includes('display') ? kept.find(device.deviceId) : null,
    ]);
    return texts ? [...messages, ...texts] : messages;
  }

  async function readDue(device: DeviceIdentity, topics: DownTopic[]): Promise<Downlink[]> {
    const row = await getDue(device);
    if (topics.includes('profile') && !row.answers_profiles) {
      await rememberAnswering(db, [device.deviceId]);
      bus.publish('device', { deviceId: device.deviceId, uuid: device.uuid });
      // A message that arrived meanwhile may have made the pending profile current.
      return toDownlinks(await getDue(device), topics);
    }
    return toDownlinks(row, topics);
  }

  return {
    subscribed,
    due: async (device, topic) =>
      topic === 'display'
        ? ((await kept.find(device.deviceId)) ?? [])
        : toDownlinks(await getDue(device), [topic]),
    async delivered({ deviceId }, { topic, pId, keptId }) {
      if (topic === 'profile' && pId !== undefined) await markDelivered(db, deviceId, pId);
      if (keptId !== undefined) await seen.find({ deviceId, fromId: keptId, toId: keptId });
    },
    handOver: async ({ deviceId, uuid }) =>
      bus.publish('device', { deviceId, uuid, push: 'profile' }),
  };
}

/** The configuration first: a profile may name senses that only it describes. */
function toDownlinks(row: DueDownlinkRow, topics: DownTopic[]): Downlink[] {
  const wanted = new Set(topics);
  const messages: Downlink[] = [];
  if (wanted.has('configuration')) {
    const { device, module } = row.configuration;
    const payload = { device, module, ts: row.configured_at };
    messages.push({ topic: 'configuration', payload });
  }
  if (wanted.has('profile') && row.offered_id !== null) {
    const { offered_id: pId, offered_purposes: purposes, offered_at: ts } = row;
    messages.push({ topic: 'profile', payload: { pId, purposes, ts }, pId });
  }
  if (wanted.has('state')) {
    const payload = { puId: row.pu_id, stId: row.st_id, ts: row.state_at };
    messages.push({ topic: 'state', payload });
  }
  return messages;
}
