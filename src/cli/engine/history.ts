import { createReadStream } from 'node:fs';
import defaults from '../../../config/default.ts';
import { Settings } from '../../config/settings.ts';
import { createLineReader, type ImportCandidate, Lines } from '../../imports/reader.ts';
import { csvType, ndjsonType } from '../../lib/text.ts';
import { messageOf } from '../../lib/thrown.ts';
import { type Backtest, runBacktest } from '../../play/backtest.ts';
import type { History } from '../../play/history.ts';
import { Measurements } from '../../play/measurements.ts';
import { InputError, type Options, readPurposes } from './options.ts';
import type { WriteLine } from './write.ts';

type Asked = Extract<Options, { kind: 'history' }>;
type Exported = Omit<ImportCandidate, 'line' | 'uuid'>;

const arrivalOf = ({ arrivedTs, ts }: Exported) => arrivedTs ?? ts;

/** Plays purposes on an export, and writes the lines of a backtest. Throws `InputError`. */
export async function playHistory(
  { file, purposes, against, startTs, endTs }: Asked,
  { out, warn }: { out: WriteLine; warn: WriteLine },
): Promise<void> {
  const profileOf = async (files: string[]) => {
    const read = readPurposes(files);
    for (const warning of read.warnings) await warn(`warning: ${warning}`);
    return read.purposes;
  };
  const candidate = await profileOf(purposes);
  const other = against.length > 0 ? { purposes: await profileOf(against) } : null;
  const devices = await readExport(file);
  const all = [...devices.values()];
  const [earliest, latest] = all
    .flat()
    .reduce(
      ([from, to], value) => [Math.min(from, arrivalOf(value)), Math.max(to, arrivalOf(value))],
      [Infinity, -Infinity],
    );
  if (all.length === 0) throw new InputError(`${file} contains no measurement.`);
  const { ingest, alarms } = Settings.parse(defaults);
  const backtest: Backtest = {
    candidate,
    against: other,
    map: [],
    startTs: startTs ?? earliest,
    endTs: endTs ?? Math.max(latest, startTs ?? latest),
    // An export does not say when the connector listened.
    devices: [...devices.keys()].map((uuid, id) => ({ id, uuid, listening: undefined })),
    rules: { ringMaxAgeMs: ingest.ringMaxAgeMs, reportedForMs: alarms.reportedForMs },
  };
  const lines = runBacktest(historyOf(all), backtest, Infinity, { values: 0 });
  for await (const line of lines) if (line !== null) await out(JSON.stringify(line));
}

/** The history of an export: each device has the number of its place. */
const historyOf = (devices: readonly Exported[][]): History => ({
  // An export does not say that the clock was set back.
  hasBreak: () => Promise.resolve(false),
  async *walk(device, { fromTs, untilTs }, senses) {
    const all = new Measurements();
    const ordered = senses.toSorted();
    all.clear(ordered);
    for (const value of devices[device] ?? []) {
      const { sId, ts, val, long = NaN, arrivedTs, nth } = value;
      const sense = ordered.indexOf(sId);
      if (sense === -1 || arrivalOf(value) < fromTs || arrivalOf(value) >= untilTs) continue;
      all.add(sense, ts * 1_000, val, long, arrivedTs ?? NaN, nth ?? NaN);
    }
    all.sort();
    yield all;
  },
  listRecorded: () => Promise.reject(new Error('An export has no events.')),
});

/** The measurements of each device. */
async function readExport(file: string): Promise<Map<string, Exported[]>> {
  const devices = new Map<string, Exported[]>();
  const lines = new Lines();
  let reader: ReturnType<typeof createLineReader> | undefined;
  const take = (all: ReturnType<Lines['take']>) => {
    for (const line of all) {
      reader ??= createLineReader(/^\s*\{/.test(line.text ?? '') ? ndjsonType : csvType);
      const read = reader.read(line);
      if (typeof read === 'string') throw new InputError(`${file}:${line.number}: ${read}.`);
      if (read === null) continue;
      const { uuid, sId, ts, val, long, arrivedTs, nth } = read;
      const values = devices.get(uuid) ?? [];
      devices.set(uuid, values);
      values.push({ sId, ts, val, long, arrivedTs, nth });
    }
  };
  try {
    for await (const chunk of createReadStream(file)) take(lines.take(chunk as Buffer));
    take(lines.end());
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`${file} cannot be read: ${messageOf(error)}`);
  }
  return devices;
}
