import { execFile } from 'node:child_process';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { findProgram } from '../../test/support/program.ts';
import type { BenchContext, Row } from '../bench-context.ts';
import { schemaOf } from '../database.ts';
import type { Meter } from '../meter.ts';
import { interleave, type Contender } from '../rounds.ts';
import { cpuMsOf } from '../usage.ts';
import { firstCopiedSeries, serviceContender, type ServiceContender } from './contenders.ts';

/** 50 measurements per message, compared with COPY of the same rows into the same table. */
export const batches: Row = {
  name: 'batches',
  async run(context) {
    const shape = { devices: context.options.devices, inFlight: 1, samplesPerMessage: 50 };
    const service = await serviceContender(context, 'batches', shape);
    const psql = findProgram('psql');
    const contenders = psql === null ? [service] : [service, copyContender(context, service, psql)];
    return {
      row: 'batches',
      work: `${shape.devices} devices, 50 measurements a message, 1 message in flight each`,
      rounds: await interleave(contenders, context.options.rounds, context.tell),
      comparisons: contenders.slice(1).map(({ name: beside }) => ({
        metric: 'rowsPerSecond',
        ours: service.name,
        beside,
        bound: 'at least' as const,
        target: 0.5,
      })),
      notes: psql === null ? ['COPY: no psql on this machine.'] : [],
    };
  },
};

/** Each turn copies what the service stored in the turn before, with other series numbers. */
function copyContender(
  context: BenchContext,
  { meter, databaseUrl }: ServiceContender,
  psql: string,
): Contender {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-copy-'));
  context.defer(async () => rmSync(dir, { recursive: true, force: true }));
  let copied = meter.given().map(() => 0);
  return {
    name: 'COPY by psql',
    async turn() {
      const file = join(dir, 'rows.tsv');
      const until = meter.given();
      const lines = Readable.from(blocksOf(meter, copied, until));
      await pipeline(lines, createWriteStream(file));
      const rows = sum(until) - sum(copied);
      copied = until;
      const schema = await schemaOf(databaseUrl);
      const cpuBefore = cpuMsOf(context.database.pid);
      const startMs = performance.now();
      const command = `\\copy ${schema}.measurement (series_id, ts, val) from '${file}'`;
      await promisify(execFile)(psql, [
        '-X',
        '-q',
        '-v',
        'ON_ERROR_STOP=1',
        '-c',
        command,
        databaseUrl,
      ]);
      const elapsedMs = performance.now() - startMs;
      return {
        rowsPerSecond: (rows / elapsedMs) * 1_000,
        databaseCores: (cpuMsOf(context.database.pid) - cpuBefore) / elapsedMs,
      };
    },
  };
}

/** In the order of arrival: a message of each device, then the next one of each. */
function* blocksOf(meter: Meter, from: number[], until: number[]): Generator<string> {
  const perMessage = 50;
  const first = Math.min(...from);
  const last = Math.max(...until);
  for (let index = first; index < last; index += perMessage) {
    let block = '';
    for (const [device, end] of until.entries()) {
      if (index < (from[device] ?? 0) || index >= end) continue;
      for (let at = index; at < index + perMessage; at += 1) {
        const { sId, val, ts } = meter.sampleAt(at);
        const series = firstCopiedSeries + device * 16 + Number(sId);
        block += `${series}\t${new Date(ts).toISOString()}\t${val}\n`;
      }
    }
    yield block;
  }
}

function sum(counts: number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
