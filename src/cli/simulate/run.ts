import type { Screen } from '../command-line.ts';
import { count, createTally, publishAll, type Reading, type Tally } from './devices.ts';
import {
  connectDevices,
  type Fleet,
  forEachBounded,
  httpConnections,
  installOnFleet,
  registerDevices,
  storePurpose,
} from './fleet.ts';
import type { Options } from './options.ts';
import {
  AnyAnswer,
  createRest,
  createTransport,
  openAccount,
  type OpenAccount,
  type RegistrationAnswer,
  type SimulatorLogin,
} from './rest.ts';
import { type Verification, verify } from './verify.ts';

type Run = {
  options: Options;
  credentials: SimulatorLogin | null;
  screen: Screen;
  /** Ends the run early. What was acknowledged is still compared. */
  signal: AbortSignal;
};

/**
 * Does the whole run through public interfaces only. Resolves to whether everything that was acknowledged is stored.
 */
export async function simulate({ options, credentials, screen, signal }: Run): Promise<boolean> {
  const transport = createTransport({ ...options, maxConnections: httpConnections });
  const made: Made = { registrations: [], purposeUuid: null };
  let account: OpenAccount | null = null;
  try {
    account = await openAccount(createRest(transport, options.url), credentials);
    screen.say(`${account.throwAway ? 'Registered' : 'Logged in to'} the account ${account.email}`);
    const { rest } = account;
    const { insecure, protocol } = options;
    const fleet = { rest, screen, signal, insecure, protocol, tally: createTally() };
    return await drive(fleet, options, made);
  } finally {
    if (account) await leave(account, made, options, screen);
    transport.close();
  }
}

async function drive(fleet: Fleet, options: Options, made: Made): Promise<boolean> {
  const { rest, screen, tally, signal } = fleet;
  made.registrations = await registerDevices(fleet, options.devices);
  const devices = await connectDevices(fleet, made.registrations);
  try {
    if (!signal.aborted) {
      made.purposeUuid = await storePurpose(rest);
      await installOnFleet(fleet, devices, made.purposeUuid);
    }
    const { seconds, rate } = options;
    if (!signal.aborted) await publishAll({ devices, seconds, rate, tally, screen, signal });
  } finally {
    await Promise.all(devices.map((device) => device.disconnect()));
  }
  const { agrees, text } = report(await verify(rest, screen, devices), tally);
  screen.say(text);
  return agrees;
}

async function leave(account: OpenAccount, made: Made, options: Options, screen: Screen) {
  if (!options.keep) {
    await cleanUp(account, made).then(
      () => screen.say('Removed everything this run created.'),
      (error: Error) => screen.say(`Could not remove what this run created: ${error.message}`),
    );
  } else if (account.throwAway) {
    screen.say(`Kept the account ${account.email} with the password ${account.password}`);
  }
}

const maxExamples = 3;

/** Describes the result of the run in plain words. `agrees` is false if anything differs. */
export function report(
  verification: Verification,
  tally: Tally,
): { agrees: boolean; text: string } {
  const { comparison, recordedEvents } = verification;
  const { acknowledged, found, lost, doubled, foreign, unacknowledged } = comparison;
  const nothing = acknowledged === 0;
  const events = tally.events > recordedEvents;
  const agrees = !nothing && !events && lost.length + doubled.length + foreign.length === 0;
  const lines = [
    nothing
      ? 'Nothing was acknowledged, so there is nothing to compare.'
      : `${count(acknowledged)} measurements were acknowledged, and ${count(found)} of them were ` +
        'read back.',
    ...examples('acknowledged but not stored', lost),
    ...examples('stored more than once', doubled),
    ...examples('stored, but never sent in this form', foreign),
    `${count(recordedEvents)} events are recorded; devices received ${count(tally.events)}.`,
    ...(events ? ['DIFFERENCE: devices received events that are not recorded.'] : []),
    ...warnings(tally, unacknowledged),
    ...(agrees ? ['Everything that was acknowledged is stored exactly once, as it was sent.'] : []),
  ];
  return { agrees, text: lines.join('\n') };
}

function examples(what: string, readings: Reading[]): string[] {
  if (readings.length === 0) return [];
  const some = readings.slice(0, maxExamples).map(({ sId, val, ts }) => `${sId} = ${val} at ${ts}`);
  const more = readings.length > maxExamples ? ', …' : '';
  return [`DIFFERENCE: ${count(readings.length)} ${what}: ${some.join(', ')}${more}`];
}

/** Lines that do not count against the service, but explain the figures. */
function warnings(tally: Tally, unacknowledged: number): string[] {
  const open = tally.published - tally.acknowledged;
  return [
    open > 0 && `${count(open)} messages were never acknowledged.`,
    unacknowledged > 0 &&
      `${count(unacknowledged)} measurements were stored without being acknowledged.`,
    tally.skipped > 0 &&
      `${count(tally.skipped)} readings were skipped because too many were waiting.`,
    tally.reconnects > 0 &&
      `Connections were lost; devices reconnected ${count(tally.reconnects)} times.`,
    tally.refused > 0 &&
      `The service rejected ${count(tally.refused)} items: ${tally.firstRefusal}`,
  ].filter((line) => line !== false);
}

/** What a run created and has to remove. */
type Made = { registrations: RegistrationAnswer[]; purposeUuid: string | null };

/** Removes the run's account. From an existing account it removes only what the run added. */
async function cleanUp(account: OpenAccount, made: Made): Promise<void> {
  const remove = (path: string) => account.rest.call({ method: 'DELETE', path, answer: AnyAnswer });
  if (account.throwAway) {
    await remove('/v2/accounts');
    return;
  }
  const never = new AbortController().signal;
  const uuids = made.registrations.map(({ deviceAuthUuid }) => deviceAuthUuid);
  await forEachBounded(uuids, httpConnections, never, (uuid) => remove(`/v2/devices/${uuid}`));
  if (made.purposeUuid) await remove(`/v2/purposes/${made.purposeUuid}`);
}
