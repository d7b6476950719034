/** RFC 4180: in quotes where it holds one, a comma or the end of a line. */
const quoted = (text: string) => `
  case when ${text} ~ '[",\r\n]' then concat('"', replace(${text}, '"', '""'), '"') else ${text} end`;

/** The console's downloads do the same with names: a spreadsheet takes it for text, and not for a formula. */
const harmless = (text: string) =>
  `concat(case when ${text} ~ '^[-=+@\t\r]' then '''' end, ${text})`;

const columns: [name: string, sql: string][] = [
  ['deviceAuthUuid', 'uuid'],
  ['timestamp', 'ms'],
  ['type', 'type'],
  ['eventId', 'seq'],
  ['event', 'event.event'],
  ['newValue', 'event."newValue"'],
  ['oldValue', 'event."oldValue"'],
  // Devices that evaluate for themselves report it: it may be any text.
  ['pId', quoted(harmless('engine."pId"'))],
  ['puId', 'engine."puId"'],
  ['stId', 'engine."stId"'],
  ['evId', 'engine."evId"'],
  // `0x10=9.7 0x11=1`: what fired it; a position is 1 (inside) or 0.
  ['senses', quoted('fired.senses')],
  ['notified', 'event.notified'],
  ['notNotified', 'event."notNotified"'],
];

export const csvHeader = `${columns.map(([name]) => name).join(',')}\r\n`;

/** A line, as SQL; what an event has not is empty. An accessor for each column would parse the body as often. */
export const csvRow = `(
  select concat(${columns.map(([, sql]) => sql).join(", ',', ")}, chr(13), chr(10))
    from json_to_record(body::json) as event
           (event text, "newValue" text, "oldValue" text, cause json, notified text, "notNotified" text),
         json_to_record(event.cause) as cause (engine json, senses json),
         json_to_record(cause.engine) as engine ("pId" text, "puId" text, "stId" text, "evId" text),
         lateral (select string_agg(concat(s->>'sId', '=', s->>'val'), ' ') as senses
                    from json_array_elements(cause.senses) as s) as fired)`;
