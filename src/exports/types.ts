import type { RequestInfo } from '../http/request.ts';

/** CSV as RFC 4180 has it. */
export const csvType = 'text/csv';
/** A line of JSON for each. */
export const ndjsonType = 'application/x-ndjson';

export type ExportType = 'application/json' | typeof csvType | typeof ndjsonType;

/** What the Accept header asks for; JSON where it names none of these. */
export function typeOf(request: Pick<RequestInfo, 'accepts'>): ExportType {
  return (request.accepts('application/json', csvType, ndjsonType) ||
    'application/json') as ExportType;
}
