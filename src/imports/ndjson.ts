import { toCandidate, type ImportCandidate, type Fields } from './candidate.ts';

/** A line that is one JSON object. Members of other names are not read. */
export function readJsonLine(text: string, line: number): ImportCandidate | string {
  // To find out by an exception costs twenty times as much.
  if (!/^\s*\{/.test(text)) return 'invalid: the line is no JSON object';
  try {
    return toCandidate(JSON.parse(text) as Fields, line);
  } catch {
    return 'invalid: the line is no JSON object';
  }
}
