import type { Screen } from '../command-line.ts';
import { createTally, publishAll } from './devices.ts';
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
import { verify } from './verify.ts';

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
  const { agrees, text } = await verify({ rest, screen, devices, tally });
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
