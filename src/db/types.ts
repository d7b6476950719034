import pg from 'pg';

// Identities stay far below 2^53, and a point in time is a number of milliseconds everywhere in this
// program: both are plain numbers from here on.
export const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
// oxlint-disable-next-line no-restricted-globals -- a given time
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).getTime());

/**
 * In which form a session writes its values, whatever the server, the database or the role is set to (`alter database
 * … set datestyle`): the parsers above read ISO 8601 alone, and a number is read back as it was stored only with all
 * of its digits.
 */
export const sessionFormats = {
  timezone: 'UTC',
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  extra_float_digits: 1,
  bytea_output: 'hex',
} as const;

/** Settings as the `options` of a connection: the server has them before the first statement. */
export const optionsOf = (settings: Record<string, string | number>): string =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ');
