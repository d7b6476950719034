import { call } from '../ask.ts';
import type { DeviceKeys, Fixture } from '../fixture.ts';
import { asDevice, install, registerDevice, type Site } from './device.ts';
import { wideWindows } from './purposes.ts';

/** For each sense, everything before the measurement that fires. */
const collected = [
  { sId: '0x01', val: 21 },
  { sId: '0x01', val: 31 },
  { sId: '0x01', val: 32.5 },
  { sId: '0x02', val: 10.25 },
  { sId: '0x02', val: 12 },
  { sId: '0x03', val: -1 },
  { sId: '0x03', val: 1 },
  { sId: '0x03', val: -2 },
  { sId: '0x04', val: 1 },
  { sId: '0x06', val: { lat: 50.5, long: 14.5 } },
  { sId: '0x07', val: 1 },
  { sId: '0x07', val: 2 },
  { sId: '0x07', val: 3 },
];

const firing: Fixture['next']['measurements'] = [
  { message: { sId: '0x01', val: 33 }, evId: 10 },
  { message: { sId: '0x02', val: 15.5 }, evId: 11 },
  { message: { sId: '0x03', val: -3 }, evId: 12 },
  { message: { sId: '0x06', val: { lat: 50.25, long: 14.75 } }, evId: 14 },
  { message: { sId: '0x07', val: 4 }, evId: 90 },
  // Moves the device, so it comes last.
  { message: { sId: '0x05', val: 1 }, evId: 13 },
];

export type EvidenceScene = {
  device: DeviceKeys;
  pId: string;
  next: Omit<Fixture['next'], 'account'>;
};

/** A device outside its initial state, each of whose events lacks one measurement. */
export async function collectEvidence(site: Site, purposeUuid: string): Promise<EvidenceScene> {
  const device = await registerDevice(site, 'half-full windows');
  const { uuid } = device;
  const pId = await install(site, [uuid], { purposeUuids: [purposeUuid] });
  await asDevice(site, device, async ({ publish }) => {
    for (const measurement of collected) await publish('up/measurements', measurement);
  });
  const path = `/v2/devices/${uuid}/configuration`;
  const { state } = await call<{ state: { puId: number; stId: number } }>(site.url, path, {
    token: site.token,
  });
  if (state.stId !== 2) throw new Error(`Expected state 2, found ${JSON.stringify(state)}.`);
  return { device, pId, next: { uuid, measurements: firing, state: { puId: 1, stId: 3 } } };
}

/** A device with long evidence: what came after it was first written is stored beside it. */
export async function collectMuch(site: Site): Promise<{ device: DeviceKeys; pId: string }> {
  const device = await registerDevice(site, 'wide windows');
  const pId = await install(site, [device.uuid], { purposes: [wideWindows] });
  await asDevice(site, device, async ({ publish }) => {
    for (const val of [10, 20, 30, 40, 50]) await publish('up/measurements', { sId: '0x07', val });
  });
  return { device, pId };
}
