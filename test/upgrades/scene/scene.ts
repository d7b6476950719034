import type { HookReceiver } from '../../support/hook-receiver.ts';
import type { MailServer } from '../../support/smtp.ts';
import { call } from '../ask.ts';
import { isLetIn } from '../device.ts';
import type { DeviceKeys, Fixture } from '../fixture.ts';
import type { Program } from '../program.ts';
import type { Receiver } from '../receiver.ts';
import { askForLinks, beRefused, makeOnce, openDoors } from './access.ts';
import { openAccount, storePurposes } from './accounts.ts';
import { asDevice, registerDevice, rotateToken, type Site } from './device.ts';
import { collectEvidence, collectMuch } from './evidence.ts';
import { beRejected, evaluateItself, fillHistory, playBack } from './history.ts';
import { notify } from './notifications.ts';
import { addContacts, raiseAlarms } from './people.ts';
import { setProfiles } from './profiles.ts';
import { bell, greenhouse, plain } from './purposes.ts';

export type Scene = Omit<Fixture, 'version' | 'recordedTs' | 'migrations' | 'answers'> & {
  pIds: string[];
};

/** What surrounds the service, and the operator's `npm run account`. */
export type Around = {
  receiver: Receiver;
  mail: MailServer;
  hooks: HookReceiver;
  runAccount: (...args: string[]) => Promise<void>;
};

/** Makes a small but complete installation, through the public interfaces only. */
export async function setScene(program: Program, around: Around): Promise<Scene> {
  const { receiver, mail, hooks, runAccount } = around;
  const { url, mqttPort } = program;
  const nowTs = Date.now();
  const ann = await openAccount(url, {
    email: 'Ann@example.org',
    newPassword: 'a second, longer password',
    push: ['aa01', 'aa02'],
  });
  const bob = await openAccount(url, { email: 'bob@example.org', push: ['bb01'] });
  const site: Site = { url, mqttPort, token: ann.token };
  const purposeUuids = await storePurposes(url, ann.token, [greenhouse, bell, plain(8, 'Eighth')]);
  const profiles = await setProfiles(site, purposeUuids);
  await changePurpose(site, purposeUuids[2] ?? '');
  const evidence = await collectEvidence(site, purposeUuids[0] ?? '');
  const wide = await collectMuch(site);
  const own = await evaluateItself(site, nowTs);
  const tokens = await changeTokens(site);
  const history = await fillHistory(site, nowTs);
  await playBack(site, history, nowTs);
  const rejected = await beRejected(site, nowTs);
  const ringing = await notify({ ...site, token: bob.token }, receiver);
  const gone = await removeDevice(site);
  await addContacts(site, mail, hooks);
  const alarms = await raiseAlarms(site, nowTs);
  const made = await makeOnce(site, ann.email, [history, rejected]);
  await limitLabel(site, purposeUuids[1] ?? '');
  await beRefused(site, history, gone);
  await askForLinks(url, mail, bob);
  await runAccount('quota', bob.email, 'devices', '500');
  return {
    accounts: [await openDoors(url, ann), bob],
    devices: [
      ...profiles.devices,
      evidence.device,
      wide.device,
      own.device,
      ...tokens,
      history,
      rejected,
      ringing.device,
      ...alarms.devices,
      gone,
    ],
    made,
    next: { account: ann.email, ...evidence.next },
    queued: {
      account: bob.email,
      uuid: ringing.device.uuid,
      notificationIds: ringing.notificationIds,
    },
    waiting: profiles.waiting,
    pIds: [...profiles.pIds, evidence.pId, wide.pId, own.pId, ringing.pId, alarms.pId],
  };
}

/** A purpose with a former version. */
async function changePurpose({ url, token }: Site, purposeUuid: string): Promise<void> {
  const body = plain(8, 'Eighth, changed');
  await call(url, `/v2/purposes/${purposeUuid}`, { method: 'PUT', token, body });
}

/** A label whose limits devices would take. */
async function limitLabel({ url, token }: Site, purposeUuid: string): Promise<void> {
  const body = { limits: [{ label: 'garden', purposeUuid }] };
  await call(url, '/v2/devices/labels/limits', { method: 'PUT', token, body });
}

/** One device whose new token has not been used, so that the old one is still valid, and one whose new token has. */
async function changeTokens(site: Site): Promise<DeviceKeys[]> {
  const unused = await registerDevice(site, 'new token not used yet');
  const used = await registerDevice(site, 'new token in use');
  const fresh = await rotateToken(site, unused);
  const taken = await rotateToken(site, used);
  // After a wrong token, attempts are refused unchecked for a second, so the right one comes first.
  if (!(await isLetIn(site.mqttPort, used.uuid, taken.new))) throw new Error('Not let in.');
  return [
    { uuid: unused.uuid, opens: [fresh.old, fresh.new], refused: ['x'.repeat(32)] },
    { uuid: used.uuid, opens: [taken.new], refused: [taken.old] },
  ];
}

/** A device that measured something and was removed with it. */
async function removeDevice(site: Site): Promise<DeviceKeys> {
  const { token, url } = site;
  const { uuid, opens } = await registerDevice(site, 'gone');
  await asDevice(site, { uuid, opens, refused: [] }, ({ publish }) =>
    publish('up/measurements', { sId: '0x01', val: 1 }),
  );
  await call(url, `/v2/devices/${uuid}`, { method: 'DELETE', token });
  return { uuid, opens: [], refused: opens };
}
