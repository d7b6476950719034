import type { DeviceKeys } from '../fixture.ts';
import { asDevice, install, registerDevice, whenProfile, type Site } from './device.ts';
import { plain } from './purposes.ts';

export type ProfileScene = {
  devices: DeviceKeys[];
  waiting: { uuid: string; pId: string }[];
  pIds: string[];
};

/** Profiles in every state. Devices that one waits for receive it when they subscribe. */
export async function setProfiles(site: Site, purposeUuids: string[]): Promise<ProfileScene> {
  const [answering, silent] = [
    await registerDevice(site, 'answers profiles'),
    await registerDevice(site, 'has not answered yet'),
  ];
  const pIds: string[] = [];
  const give = async ({ uuid }: DeviceKeys, profile: Parameters<typeof install>[2]) => {
    const pId = await install(site, [uuid], profile);
    pIds.push(pId);
    return pId;
  };

  await asDevice(site, answering, async (device) => {
    await device.subscribe('down/profile');
    const answer = async (state: string, rest = {}) => {
      const { pId } = await device.receive('down/profile');
      await device.publish('up/profile', { pId, state, ...rest });
    };
    await give(answering, { purposeUuids });
    await answer('current');
    await give(answering, { purposes: [plain(2, 'Second'), plain(3, 'Third')] });
    await answer('current', { text: 'gladly' });
    await give(answering, { purposes: [plain(4, 'Fourth')] });
    await answer('rejected', { text: 'no room for it' });
  });
  await give(answering, { purposes: [plain(5, 'Fifth')] });
  const pending = await give(answering, { purposes: [plain(6, 'Sixth')] });

  const sent = await give(silent, { purposes: [plain(7, 'Seventh')] });
  await asDevice(site, silent, async (device) => {
    await device.subscribe('down/profile');
    await device.receive('down/profile');
    await whenProfile(site, sent, 'sent');
  });
  const states = ['replaced', 'current', 'rejected', 'superseded', 'pending', 'sent'];
  for (const [at, state] of states.entries()) await whenProfile(site, pIds[at] ?? '', state);
  return {
    devices: [answering, silent],
    waiting: [
      { uuid: answering.uuid, pId: pending },
      { uuid: silent.uuid, pId: sent },
    ],
    pIds,
  };
}
