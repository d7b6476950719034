import type { RequestInfo } from '../http/request.ts';
import { csvType, ndjsonType } from '../lib/media-types.ts';

export type ExportType = 'application/json' | typeof csvType | typeof ndjsonType;

/** What the Accept header asks for; JSON where it names none of these. */
export function typeOf(request: Pick<RequestInfo, 'accepts'>): ExportType {
  return (request.accepts('application/json', csvType, ndjsonType) ||
    'application/json') as ExportType;
}
