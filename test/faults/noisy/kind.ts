import type { Enemy } from './enemy.ts';

/** Runs until the signal aborts. Whatever it opened is closed for it. */
type MakeNoise = (signal: AbortSignal) => Promise<void>;

/** One way in which an account makes life hard for the others. */
export type NoisyKind = {
  name: string;
  says: string;
  /** Prepares, without being measured, what has to be there before. Returns what makes the noise. */
  setUp(enemy: Enemy): Promise<MakeNoise>;
  /** How the settings differ from config/default.ts. `dir`: for files; `receiverPort`: receives SMS and webhooks. */
  settings?: (dir: string, receiverPort: number) => object;
  /** More environment variables for the service. `receiverPort`: where mail can be sent. */
  variables?: (receiverPort: number) => Record<string, string>;
  /** How many bytes the account's quotas let it store in that many seconds, if more than five times what it sends. */
  quotaBytes?: (seconds: number) => number;
  /** How much memory the account may take by what it has open, MB, if more than usual. */
  memoryMb?: number;
  /**
   * How much more memory is taken 30 s after the noise than after 5 s of it, MB; absent: not measured. This takes a
   * minute, so it is measured only if the noise lasts long enough for its figures to mean something.
   */
  keptMb?: number;
  /** How many files the service may open (`ulimit -n`); absent: as many as this process. */
  openFiles?: number;
  /** How long `/livez` may take, p99 in ms, if more than usual. */
  livezMs?: number;
  /** How long others' lists may take, p99 in ms, without a failure; absent: it is only shown. */
  readMs?: number;
};
