import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../../src/db/embedded/cluster.ts';
import { runFault } from '../run-fault.ts';
import type { Outcome } from '../run-fault.ts';
import { startWorld } from '../world.ts';
import type { World, WorldOptions } from '../world.ts';
import type { NoisyKind } from './kind.ts';
import { startNoise, type NoiseProcess } from './noise.ts';
import { noisyNeighbour } from './noisy-neighbour.ts';
import type { Turn } from './turns.ts';

export type NoisyRun = Pick<WorldOptions, 'devices' | 'rate' | 'timescaledb'> & {
  seconds: number;
  onReport?: (report: string) => void;
  turn?: Turn;
};

/** How many accounts the other devices belong to. */
const otherAccounts = 4;

/** A fresh installation for one kind. */
type NoisyWorld = {
  world: World;
  receiverPort: number;
  noise: NoiseProcess;
  close(): Promise<void>;
};

async function startNoisyWorld(kind: NoisyKind, run: NoisyRun): Promise<NoisyWorld> {
  const { devices, rate, timescaledb } = run;
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-noisy-'));
  const removeDir = () => rmSync(dir, { recursive: true, force: true });
  try {
    const receiverPort = await findFreePort();
    const configFile = join(dir, 'config.json');
    writeFileSync(configFile, JSON.stringify(kind.settings?.(dir, receiverPort) ?? {}));
    const world = await startWorld({
      devices,
      rate,
      timescaledb,
      accounts: otherAccounts,
      configFile,
      variables: kind.variables?.(receiverPort) ?? {},
      openFiles: kind.openFiles,
    });
    const noise = startNoise(kind.name);
    const close = async () => {
      await noise.close();
      await world.close().finally(removeDir);
    };
    return { world, receiverPort, noise, close };
  } catch (error) {
    removeDir();
    throw error;
  }
}

/** Runs one kind on a fresh installation, which is closed afterwards. */
export async function runNoisy(kind: NoisyKind, run: NoisyRun): Promise<Outcome> {
  const { seconds, onReport, turn } = run;
  const { world, receiverPort, noise, close } = await startNoisyWorld(kind, run);
  try {
    const told = { ...(onReport && { onReport }), ...(turn && { turn }) };
    const fault = noisyNeighbour(kind, { receiverPort, noise, ...told });
    return await runFault(world, fault, { times: 1, awaySeconds: seconds });
  } finally {
    await close();
  }
}
