import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../../src/db/embedded/cluster.ts';
import { runFault } from '../run-fault.ts';
import type { Outcome } from '../run-fault.ts';
import { startWorld } from '../world.ts';
import type { WorldOptions } from '../world.ts';
import type { NoisyKind } from './kind.ts';
import { noisyNeighbour } from './noisy-neighbour.ts';

export type NoisyRun = Pick<WorldOptions, 'devices' | 'rate' | 'timescaledb'> & {
  seconds: number;
  onReport?: (report: string) => void;
};

/** Accounts that the other devices belong to. */
const otherAccounts = 4;

/** One kind on a fresh installation. */
export async function runNoisy(kind: NoisyKind, run: NoisyRun): Promise<Outcome> {
  const { seconds, onReport, ...load } = run;
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-noisy-'));
  try {
    const receiverPort = await findFreePort();
    const configFile = join(dir, 'config.json');
    writeFileSync(configFile, JSON.stringify(kind.settings?.(dir, receiverPort) ?? {}));
    const world = await startWorld({
      ...load,
      accounts: otherAccounts,
      configFile,
      variables: kind.variables?.(receiverPort) ?? {},
    });
    try {
      const fault = noisyNeighbour(kind, { receiverPort, ...(onReport && { onReport }) });
      return await runFault(world, fault, { times: 1, awaySeconds: seconds });
    } finally {
      await world.close();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
