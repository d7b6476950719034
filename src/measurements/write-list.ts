import type { BucketView, MeasurementView } from './schema.ts';

// No field here ever needs quotes.
const measurementHeader = 'sId,ts,val,lat,long\r\n';
const bucketHeader = 'sId,ts,min,max,avg,count,last\r\n';

/** A position leaves `val` empty, a number `lat` and `long`. */
export function* measurementsAsCsv(rows: MeasurementView[]): Generator<string> {
  yield measurementHeader;
  for (const { sId, ts, val } of rows) {
    yield typeof val === 'number'
      ? `${sId},${ts},${val},,\r\n`
      : `${sId},${ts},,${val.lat},${val.long}\r\n`;
  }
}

export async function* bucketsAsCsv(chunks: AsyncIterable<BucketView[]>): AsyncGenerator<string> {
  yield bucketHeader;
  for await (const rows of chunks) {
    yield rows
      .map((b) => `${b.sId},${b.ts},${b.min},${b.max},${b.avg},${b.count},${b.last}\r\n`)
      .join('');
  }
}

/** `{buckets: […], timestamp}`, written as it comes. */
export async function* bucketsAsJson(
  chunks: AsyncIterable<BucketView[]>,
  timestamp: number,
): AsyncGenerator<string> {
  let separator = '';
  yield '{"buckets":[';
  for await (const rows of chunks) {
    yield separator + rows.map((row) => JSON.stringify(row)).join(',');
    separator = ',';
  }
  yield `],"timestamp":${timestamp}}`;
}
