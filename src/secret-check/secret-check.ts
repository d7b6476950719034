import { secretFileIn } from '../config/secret.ts';
import type { Examined, SecretConfig } from './examine.ts';
import type { Dependents } from './queries.ts';

/** Where the secret was looked for, what is wrong, what to restore, and the command to accept another one. */
export function describeRefusal(
  examined: Pick<Examined, 'secret' | 'previous' | 'checks' | 'isOwnKnown' | 'dependents' | 'left'>,
  config: Pick<SecretConfig, 'secret' | 'secretPlace' | 'dataDir'>,
): string[] {
  const { secretPlace: place } = config;
  if (examined.left > 0) return describeLeft(examined.left, place);
  const isMissing = examined.secret === null;
  return [
    `${place}: ${isMissing ? missing : other}${previousToo(examined)}`,
    `The tokens of ${describeDependents(examined.dependents)} were made with the earlier one.`,
    `Restore it: ${examined.isOwnKnown ? howToUseOwn(config) : howToRestore(config)}`,
    isMissing
      ? 'If it is lost for good: `npm run secret -- accept` makes a new one, after saying what ends.'
      : 'To change it, give the earlier one as SECRET_PREVIOUS. If that is lost for good: `npm run secret -- accept` takes this one, after saying what ends.',
  ];
}

/** A change of the secret would end before every device has its new token. */
function describeLeft(left: number, place: string): string[] {
  const devices = count(left, 'device');
  return [
    `${place}: ${devices} still ${left === 1 ? 'has' : 'have'} a token of the secret before this one, and would be shut out.`,
    'Set SECRET_PREVIOUS (or SECRET_PREVIOUS_FILE) to that secret again until they have logged in with a new token. `npm run secret -- status` counts them.',
    'To go on without them: `npm run secret -- accept`, after saying what ends.',
  ];
}

/** For people: "12 devices and 1 session". */
export function describeDependents(dependents: Dependents | null): string {
  const { devices = 0, sessions = 0 } = dependents ?? {};
  return `${count(devices, 'device')} and ${count(sessions, 'session')}`;
}

const missing = 'is not there, and neither SECRET nor SECRET_FILE is set.';
const other = 'is another secret than the one this database is used with.';

function previousToo({ previous, checks }: Pick<Examined, 'previous' | 'checks'>): string {
  const isCompared = previous !== null && checks.length > 0;
  return isCompared ? ' SECRET_PREVIOUS is not that one either.' : '';
}

function howToUseOwn({ secretPlace, dataDir }: Pick<SecretConfig, 'secretPlace' | 'dataDir'>) {
  const [variable = secretPlace] = secretPlace.split(' ');
  return `leave ${variable} out. ${secretFileIn(dataDir)} holds the earlier one.`;
}

function howToRestore({ secret, secretPlace }: Pick<SecretConfig, 'secret' | 'secretPlace'>) {
  if (secretPlace === 'SECRET') return 'set SECRET to its earlier value.';
  if (secret !== null) return `put back into ${secretPlace} what it held before.`;
  return `put ${secretPlace} back from a backup (what \`npm run backup\` makes holds it as "secret"), or set SECRET or SECRET_FILE where that is how it was given.`;
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}
