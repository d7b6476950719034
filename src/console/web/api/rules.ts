import { type Answer, ApiError, call, callLines } from './request.ts';
import type { BacktestLine, Purpose, PurposeVersion } from './types.ts';

const pathOf = (uuid: string) => `/v2/purposes/${uuid}`;

/** A stored purpose, with its `tag`. */
export const getPurpose = (uuid: string, signal?: AbortSignal): Promise<Answer<Purpose>> =>
  call('GET', pathOf(uuid), { signal });

/** Stores a new purpose; gives its uuid. */
export const addPurpose = async (body: unknown, reason: string): Promise<string> => {
  const query = { reason };
  return (await call<{ purposeUuid: string }>('POST', '/v2/purposes', { query, body })).body
    .purposeUuid;
};

/** Replaces a purpose, if it is still the version with that tag. Gives the tag of the new one. */
export const replacePurpose = async (
  uuid: string,
  body: unknown,
  { tag, reason }: { tag: string | undefined; reason: string },
): Promise<string> =>
  (await call('PUT', pathOf(uuid), { query: { reason }, body, ifMatch: tag })).tag;

export const deletePurpose = (uuid: string) => call('DELETE', pathOf(uuid));

/** Makes a new version with the content of that one, if the newest is still the one with that tag. */
export const restoreVersion = (uuid: string, version: number, tag: string) =>
  call('POST', `${pathOf(uuid)}/versions/${version}/restore`, { ifMatch: tag });

/** Its versions, newest first. */
export const listVersions = async (uuid: string, signal?: AbortSignal): Promise<PurposeVersion[]> =>
  (await call<{ versions: PurposeVersion[] }>('GET', `${pathOf(uuid)}/versions`, { signal })).body
    .versions;

/** What a version said; null: it is no longer kept. */
export const getVersion = async (
  uuid: string,
  version: number,
  signal?: AbortSignal,
): Promise<Purpose | null> => {
  try {
    return (await call<Purpose>('GET', `${pathOf(uuid)}/versions/${version}`, { signal })).body;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
};

/** More would help nobody who reads them. */
const mostLines = 20_000;

/** Of devices, in a range of arrival, ms; `against`: null compares with nothing. */
type Tried = {
  uuids: readonly string[];
  start: number;
  end: number;
  against: 'recorded' | { purposes: readonly unknown[] } | null;
};

/** What a rule would have done on devices, and how that differs. */
export const tryRule = (
  rule: unknown,
  { uuids, ...asked }: Tried,
  signal?: AbortSignal,
): Promise<BacktestLine[]> => {
  const body = { candidate: { purposes: [rule] }, devices: uuids, ...asked };
  return callLines('/v2/backtests', { body, signal }, mostLines);
};
