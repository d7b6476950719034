import type { ExportBucket } from './export.ts';
import type { PointBlock } from './export-points.ts';
import type { StatName } from './export-schema.ts';

/** As the database wrote them. */
export const pointItems = (block: PointBlock[]) => block.map(({ text }) => text).join(',');
export const pointLines = (block: PointBlock[]) => block.map(({ text }) => text).join('');

/** A series of which there are many points stands there in several pieces, one behind the other. */
export const seriesItems = (block: PointBlock[]) =>
  block
    .map(({ series: { deviceAuthUuid, sId }, text, vals }) => {
      return `{"deviceAuthUuid":"${deviceAuthUuid}","sId":"${sId}","ts":[${text}],"val":[${vals}]}`;
    })
    .join(',');

export const pointHeader = 'deviceAuthUuid,sId,ts,val,lat,long\r\n';

export const bucketItems = (rows: ExportBucket[]) => JSON.stringify(rows).slice(1, -1);

export const bucketLines = (rows: ExportBucket[]) =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

export const bucketHeader = (stats: readonly StatName[]) =>
  `deviceAuthUuid,sId,ts,${stats.join(',')}\r\n`;

export const bucketFields = (stats: readonly StatName[]) => (rows: ExportBucket[]) =>
  rows
    .map(({ deviceAuthUuid, sId, ts, ...values }) =>
      [deviceAuthUuid, sId, ts, ...stats.map((stat) => values[stat])].join(',').concat('\r\n'),
    )
    .join('');
