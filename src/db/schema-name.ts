import { version } from '../version.ts';

/** `0.2.0` → `sensorium_0_2_0`: where the tables are while programs from that version on may write. */
export function schemaNameFor(leastWriter: string): string {
  return `sensorium_${leastWriter.replaceAll('.', '_')}`;
}

/**
 * Where a connection looks for tables: where they are now, and where a later version puts them that lets no
 * version before this one write. Extensions have their functions in `public`.
 */
export function searchPathFor(schema: string): string {
  return [...new Set([schema, schemaNameFor(version)]), 'public'].join(',');
}
