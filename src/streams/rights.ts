import type { Bus } from '../bus/bus.ts';

export type RightsDeps = {
  bus: Bus;
  /** Told of each account that the operator shuts out. Gives what ends that. */
  onAccountDisabled: (listener: (accountId: number) => void) => () => void;
  /** How often it is asked whether the reader may still read. */
  heartbeatMs: number;
};

export type ReaderRights = {
  accountId: number;
  /** Of a key its identifier. */
  sessionId: string;
  /** Rejects once the reader may read no longer: the token ended, the device is somebody else's. */
  recheck: () => Promise<unknown>;
  /** The reader has gone, or the service stops. */
  signal: AbortSignal;
};

/** Aborts once the reader has gone or may read no longer; `release` ends the watch. */
export type RightsWatch = { until: AbortSignal; release: () => void };

/** Watches whether who reads a stream may still read it. */
export function watchRights(deps: RightsDeps, reader: ReaderRights): RightsWatch {
  const { accountId, sessionId, recheck, signal } = reader;
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const forget = deps.bus.subscribe('revoked', (revoked) => {
    const isMeant = revoked.sessionId === undefined || revoked.sessionId === sessionId;
    if (revoked.accountId === accountId && isMeant) end();
  });
  const stayUnlessDisabled = deps.onAccountDisabled((disabled) => {
    if (disabled === accountId) end();
  });
  const timer = setInterval(() => void recheck().catch(end), deps.heartbeatMs);
  return {
    until: AbortSignal.any([signal, ended.signal]),
    release() {
      clearInterval(timer);
      forget();
      stayUnlessDisabled();
    },
  };
}
