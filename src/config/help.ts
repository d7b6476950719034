import { Environment } from './environment.ts';

/** What `--help` prints: how to call it, and every environment variable from the schema itself. */
export function helpText(): string {
  const variables = Object.entries(Environment.shape).map(([name, schema]) => {
    const parsed = schema.safeParse(undefined);
    const byDefault =
      parsed.success && parsed.data !== undefined ? ` [${String(parsed.data)}]` : '';
    return `  ${name.padEnd(20)}${schema.description ?? ''}${byDefault}`;
  });
  return [
    'Usage: npm start [-- PART]',
    '',
    'Without PART everything runs in this process. Parts of a larger installation, which share one',
    'DATABASE_URL, REDIS_URL and SECRET:',
    '  api                 HTTP only',
    '  connector --id N    the connector with that id in config/ only (MQTT, HTTP or a bridge)',
    '  --help, --version',
    '',
    'Environment:',
    ...variables,
    '',
    'Every other setting stands with its default in config/default.ts; write yours into',
    'config/local.json.',
  ].join('\n');
}
