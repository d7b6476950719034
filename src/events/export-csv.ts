const body = 'body::json';
const engine = `${body}->'cause'->'engine'`;

/** RFC 4180: in quotes where it holds one, a comma or the end of a line. */
const quoted = (text: string) => `
  case when ${text} ~ '[",\r\n]' then concat('"', replace(${text}, '"', '""'), '"') else ${text} end`;

/** `0x10=9.7 0x11=1`: what fired it; a position is 1 (inside) or 0. */
const senses = `(
  select string_agg(concat(c->>'sId', '=', c->>'val'), ' ')
    from json_array_elements(${body}->'cause'->'senses') as c)`;

const columns: [name: string, sql: string][] = [
  ['deviceAuthUuid', 'uuid'],
  ['timestamp', 'ms'],
  ['type', 'type'],
  ['eventId', 'seq'],
  ['event', `${body}->>'event'`],
  ['newValue', `${body}->>'newValue'`],
  ['oldValue', `${body}->>'oldValue'`],
  ['pId', quoted(`(${engine}->>'pId')`)],
  ['puId', `${engine}->>'puId'`],
  ['stId', `${engine}->>'stId'`],
  ['evId', `${engine}->>'evId'`],
  ['senses', quoted(senses)],
  ['notified', `${body}->>'notified'`],
  ['notNotified', `${body}->>'notNotified'`],
];

export const csvHeader = `${columns.map(([name]) => name).join(',')}\r\n`;

/** A line, as SQL; what an event has not is empty. */
export const csvRow = `concat(${columns.map(([, sql]) => sql).join(", ',', ")}, chr(13), chr(10))`;
