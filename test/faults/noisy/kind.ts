import type { Enemy } from './enemy.ts';

/** Goes on until the signal says that it is enough; what it opened is closed for it. */
type MakeNoise = (signal: AbortSignal) => Promise<void>;

/** One way in which an account makes life hard for the others. */
export type NoisyKind = {
  name: string;
  says: string;
  /** Prepares what has to be there before, unmeasured, and gives what makes the noise. */
  setUp(enemy: Enemy): Promise<MakeNoise>;
  /** What differs from config/default.ts. `dir`: for files; `receiverPort`: where SMS and webhooks can be sent. */
  settings?: (dir: string, receiverPort: number) => object;
  /** Environment of the service, beyond what it needs. `receiverPort`: where mail can be sent. */
  variables?: (receiverPort: number) => Record<string, string>;
  /** Bytes that quotas of the account's let it store in that many seconds, where it is more than five times what it sends. */
  quotaBytes?: (seconds: number) => number;
  /** Memory that what the account may have open takes, MB, where it is more than what is usual. */
  memoryMb?: number;
  /**
   * Memory that is kept 30 s after the noise, MB, beyond what 5 s of the same left behind; absent: it is not measured.
   * It takes a minute, and so only where the noise lasts long enough for its figures to mean something.
   */
  keptMb?: number;
  /** Files that the service may open (`ulimit -n`); absent: as many as this process. */
  openFiles?: number;
  /** What `/livez` may take, p99 in ms, where it is more than what is usual. */
  livezMs?: number;
  /** What others' lists may take, p99 in ms, none of them failing; absent: it is only shown. */
  readMs?: number;
};
