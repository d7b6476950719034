import pg from 'pg';

// Identities stay far below 2^53, and a point in time is a number of milliseconds everywhere in this
// program: both are plain numbers from here on.
export const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
// oxlint-disable-next-line no-restricted-globals -- a given time
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).getTime());
