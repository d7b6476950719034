import type { ExportBucket } from './export-buckets.ts';
import type { PointBlock } from './export-points.ts';
import type { StatName } from './export-schema.ts';

/** `{"measurements":[…],"timestamp":…}` of what the database wrote. */
export async function* pointsAsJson(
  blocks: AsyncIterable<PointBlock[]>,
  timestamp: number,
): AsyncGenerator<string> {
  yield '{"measurements":[';
  let separator = '';
  for await (const block of blocks) {
    yield separator + block.map(({ text }) => text).join(',');
    separator = ',';
  }
  yield `],"timestamp":${timestamp}}`;
}

/** A series of which there are many points stands there in several pieces, one behind the other. */
export async function* pointsAsColumns(
  blocks: AsyncIterable<PointBlock[]>,
  timestamp: number,
): AsyncGenerator<string> {
  yield '{"series":[';
  let separator = '';
  for await (const block of blocks) {
    const pieces = block.map(({ series: { deviceAuthUuid, sId }, text, vals }) => {
      return `{"deviceAuthUuid":"${deviceAuthUuid}","sId":"${sId}","ts":[${text}],"val":[${vals}]}`;
    });
    yield separator + pieces.join(',');
    separator = ',';
  }
  yield `],"timestamp":${timestamp}}`;
}

/** Lines behind a header, if there is one. */
export async function* pointsAsLines(
  blocks: AsyncIterable<PointBlock[]>,
  header: string,
): AsyncGenerator<string> {
  if (header !== '') yield header;
  for await (const block of blocks) yield block.map(({ text }) => text).join('');
}

export const pointHeader = 'deviceAuthUuid,sId,ts,val,lat,long\r\n';

export async function* bucketsAsJson(
  blocks: AsyncIterable<ExportBucket[]>,
  timestamp: number,
): AsyncGenerator<string> {
  yield '{"buckets":[';
  let separator = '';
  for await (const rows of blocks) {
    yield separator + JSON.stringify(rows).slice(1, -1);
    separator = ',';
  }
  yield `],"timestamp":${timestamp}}`;
}

export async function* bucketsAsNdjson(
  blocks: AsyncIterable<ExportBucket[]>,
): AsyncGenerator<string> {
  for await (const rows of blocks) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

export async function* bucketsAsCsv(
  blocks: AsyncIterable<ExportBucket[]>,
  stats: readonly StatName[],
): AsyncGenerator<string> {
  yield `deviceAuthUuid,sId,ts,${stats.join(',')}\r\n`;
  for await (const rows of blocks)
    yield rows
      .map(({ deviceAuthUuid, sId, ts, ...values }) =>
        [deviceAuthUuid, sId, ts, ...stats.map((stat) => values[stat])].join(',').concat('\r\n'),
      )
      .join('');
}
