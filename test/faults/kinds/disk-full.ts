import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expectHolds, runFor, timeToAck } from '../fault.ts';
import type { Fault } from '../fault.ts';

const sizeMb = 400;
let mounted: string | null = null;

/** A small file system that a file fills completely, until the file is removed. */
export const diskFull: Fault = {
  name: 'disk-full',
  promise:
    'nothing is acknowledged while the disk is full; the service works again once there is room',
  losesOutcomes: true,
  short: { times: 1, awaySeconds: 1 },
  long: { times: 3, awaySeconds: 20 },
  lacks: () => (process.getuid?.() === 0 ? null : 'the right to mount a small file system'),
  async inflict(world, { times, awaySeconds }) {
    const filler = join(mounted ?? '', 'filler');
    let slowest = 0;
    for (let time = 0; time < times; time++) {
      await runFor(world, 500);
      fill(filler);
      // What fits into existing pages is still stored and acknowledged.
      await untilQuiet(world);
      const before = world.load.counts().acknowledged;
      await delay(awaySeconds * 1_000);
      const acknowledged = world.load.counts().acknowledged - before;
      expectHolds(acknowledged === 0, `no acknowledgement on a full disk, were ${acknowledged}`);
      truncateSync(filler, 0);
      const since = performance.now();
      const next = world.load.nextAck().then(() => true);
      // A server that could not even write its log has ended, and its supervisor restarts it.
      while (!(await Promise.race([next, delay(500).then(() => false)]))) {
        await world.cluster.start().catch(() => undefined);
      }
      slowest = Math.max(slowest, Math.round(performance.now() - since));
    }
    await timeToAck(world);
    return { times, 'slowest next ack ms': slowest };
  },
};

/** Mounts the small file system for the database of one run. */
export function mountSmallDisk(): { databaseDir: string; unmount(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', dir]);
  chmodSync(dir, 0o777);
  mounted = dir;
  const databaseDir = join(dir, 'database');
  mkdirSync(databaseDir, { mode: 0o755 });
  return {
    databaseDir,
    unmount() {
      execFileSync('umount', ['-l', dir]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function fill(file: string): void {
  const chunk = Buffer.alloc(64 * 1_024, 1);
  try {
    for (;;) writeFileSync(file, chunk, { flag: 'a' });
  } catch {
    const { bavail } = statfsSync(mounted ?? '/');
    if (bavail > 16) throw new Error('the disk could not be filled');
  }
}

/** Waits until nothing has been acknowledged for a second. */
async function untilQuiet(world: Parameters<Fault['inflict']>[0]): Promise<void> {
  let seen = -1;
  while (seen !== world.load.counts().acknowledged) {
    seen = world.load.counts().acknowledged;
    await delay(2_000);
  }
}
