import { createHash } from 'node:crypto';
import type { Downlink } from '../../src/contract/uplink.ts';

/**
 * What a device was given over HTTP, as it hands it back: no process has to remember it. `pId` and `texts` are what
 * it acknowledges by that; a profile that it acknowledged before is `known`.
 */
export type Given = {
  /** When the configuration was set, ms. */
  configuredTs: number | null;
  pId: string | null;
  isProfileKnown: boolean;
  /** Purpose and state. */
  place: string | null;
  /** Kept texts for its display: `keptId`. */
  texts: readonly number[];
  /** Which new token, by a mark of it. */
  token: string | null;
};

const nothingGiven: Given = {
  configuredTs: null,
  pId: null,
  isProfileKnown: false,
  place: null,
  texts: [],
  token: null,
};

const version = '1';
const maxTexts = 100;
const uuidForm = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;

/** As text of characters that a query has as they are (RFC 3986 section 2.3). */
export function writeAfter({
  configuredTs,
  pId,
  isProfileKnown,
  place,
  texts,
  token,
}: Given): string {
  const parts = [version];
  if (configuredTs !== null) parts.push(`c${configuredTs.toString(36)}`);
  if (pId !== null) parts.push((isProfileKnown ? 'k' : 'p') + pId.replaceAll('-', ''));
  if (place !== null) parts.push(`s${place}`);
  if (texts.length > 0) parts.push(`d${texts.map((id) => id.toString(36)).join('_')}`);
  if (token !== null) parts.push(`t${token}`);
  return parts.join('.');
}

/** Null for what `writeAfter` cannot have written; '' is what a device has that begins. */
export function readAfter(text: string): Given | null {
  if (text === '') return nothingGiven;
  const [first, ...parts] = text.split('.', 6);
  if (first !== version) return null;
  let given: Given | null = nothingGiven;
  for (const part of parts) given = given && readPart(given, part[0], part.slice(1));
  return given;
}

function readPart(given: Given, kind: string | undefined, value: string): Given | null {
  if (kind === 'c') {
    const configuredTs = readNumber(value);
    return configuredTs === null ? null : { ...given, configuredTs };
  }
  if (kind === 'p' || kind === 'k') {
    const pId = uuidForm.exec(value)?.slice(1).join('-');
    return pId === undefined ? null : { ...given, pId, isProfileKnown: kind === 'k' };
  }
  if (kind === 's')
    return /^-?\d{1,10}_-?\d{1,10}$/.test(value) ? { ...given, place: value } : null;
  if (kind === 't') return /^[\w-]{8}$/.test(value) ? { ...given, token: value } : null;
  if (kind !== 'd') return null;
  const texts = value.split('_', maxTexts + 1).map(readNumber);
  const areNumbers = texts.every((id) => id !== null);
  return areNumbers && texts.length <= maxTexts ? { ...given, texts } : null;
}

const readNumber = (value: string): number | null =>
  /^[0-9a-z]{1,10}$/.test(value) ? Number.parseInt(value, 36) : null;

/** What was acknowledged needs to be no more. */
export const acknowledged = (given: Given): Given => ({
  ...given,
  isProfileKnown: given.pId !== null,
  texts: [],
});

/** Of what is due, what the device was not given yet, and what it is given with that. `isAsked`: it wants its profile again. */
export function pickNew(
  due: readonly Downlink[],
  before: Given,
  isAsked: boolean,
): { messages: Downlink[]; given: Given } {
  let given = before;
  const messages = due.filter((message) => {
    const next = give(message, given, isAsked);
    given = next ?? given;
    return next !== null;
  });
  return { messages, given };
}

function give(
  { topic, payload, pId, keptId }: Downlink,
  given: Given,
  isAsked: boolean,
): Given | null {
  if (topic === 'configuration') {
    const { ts: configuredTs } = payload as { ts: number };
    return configuredTs === given.configuredTs ? null : { ...given, configuredTs };
  }
  if (topic === 'profile') {
    if (pId === undefined || (pId === given.pId && !isAsked)) return null;
    return { ...given, pId, isProfileKnown: false };
  }
  if (topic === 'state') {
    const { puId, stId } = payload as { puId: number; stId: number };
    const place = `${puId}_${stId}`;
    return place === given.place ? null : { ...given, place };
  }
  if (topic === 'token') {
    const { deviceAuthToken } = payload as { deviceAuthToken: string };
    const token = createHash('sha256').update(deviceAuthToken).digest('base64url').slice(0, 8);
    return token === given.token ? null : { ...given, token };
  }
  if (keptId === undefined) return given;
  return { ...given, texts: [...given.texts, keptId] };
}
