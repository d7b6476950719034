import { parentPort } from 'node:worker_threads';
import type { Purpose } from '../contract/purpose.ts';
import type { Warning } from '../contract/warnings.ts';
import { casesOf } from '../engine/explore/cases.ts';
import type { Bounds } from '../engine/explore/classes.ts';
import { explore, type Explored } from '../engine/explore/explore.ts';
import { findingsOf } from '../engine/explore/findings.ts';

/* The thread that explores purposes, one after the other, so that no device's message waits for it: see cases.ts. */

/** What is explored. `paths`: the JSON Pointer to each purpose; `bounds`: by sense, if they are known. */
export type Exploration = {
  purposes: Purpose[];
  paths: string[];
  bounds: [sId: string, bounds: Bounds][];
  /** Whether the streams are wanted as test vectors, too. */
  withCases: boolean;
};

/** `cases`: empty unless they are wanted. */
export type Found = Explored & { warnings: Warning[]; cases: ReturnType<typeof casesOf> };

const port = parentPort;
port?.on('message', ({ purposes, paths, bounds: given, withCases }: Exploration) => {
  const bounds = new Map(given);
  const explored = explore(purposes, { bounds });
  const pathOf = (index: number) => paths[index] ?? '';
  const warnings = findingsOf(purposes, explored, { bounds, pathOf });
  const cases = withCases ? casesOf(purposes, explored) : [];
  port.postMessage({ ...explored, warnings, cases } satisfies Found);
});
