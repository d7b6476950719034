import { openAccount, type SimulatorLogin, type OpenAccount } from './account.ts';
import { cleanUp, type Made } from './clean-up.ts';
import { createTransport } from './exchange.ts';
import {
  connectDevices,
  httpConnections,
  installOnFleet,
  registerDevices,
  storePurpose,
  type Fleet,
} from './fleet.ts';
import type { Options } from './options.ts';
import { publishAll } from './publish.ts';
import { report } from './report.ts';
import { createRest } from './rest.ts';
import type { Screen } from './screen.ts';
import { createTally } from './tally.ts';
import { verify } from './verify.ts';

export type Run = {
  options: Options;
  credentials: SimulatorLogin | null;
  screen: Screen;
  /** Ends the run early; what was acknowledged is compared all the same. */
  signal: AbortSignal;
};

/** The whole run, by public interfaces only. Resolves to whether everything that was acknowledged is there. */
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
      () => screen.say('Removed what this run had made.'),
      (error: Error) => screen.say(`Could not remove what this run had made: ${error.message}`),
    );
  } else if (account.throwAway) {
    screen.say(`Kept the account ${account.email} with the password ${account.password}`);
  }
}
