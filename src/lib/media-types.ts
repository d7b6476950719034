/** CSV as RFC 4180 has it. */
export const csvType = 'text/csv';
/** A line of JSON for each. */
export const ndjsonType = 'application/x-ndjson';
