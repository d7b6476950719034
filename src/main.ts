import { isatty } from 'node:tty';
import { parseArgs } from 'node:util';
import { loadConfig, type Config, type Role } from './config.ts';
import { createLog } from './log.ts';
import { helpText } from './help.ts';
import { tuneCollector } from './memory.ts';
import { describeReady } from './ready.ts';
import { closeOnSignals } from './signals.ts';
import { describeStartError, StartError } from './start-error.ts';
import { version } from './version.ts';

/** After this long what is still under way is given up. */
const drainTimeoutMs = 10_000;

process.title = 'sensorium';
tuneCollector();
try {
  const role = readArguments(process.argv.slice(2));
  if (role !== null) await run(await loadConfig(process.env, role));
} catch (error) {
  const lines = describeStartError(error);
  for (const line of lines ?? [error instanceof Error ? (error.stack ?? '') : String(error)])
    console.error(line);
  process.exit(1);
}

async function run(config: Config): Promise<void> {
  const isTerminal = process.stdout.isTTY;
  const log = createLog({ level: config.logLevel, isTerminal });
  // Loaded only now: a wrong setting, or --help, is answered at once.
  const { startService } = await import('./service.ts');
  // Asked to stop while it still starts, the service first comes up and then goes in order.
  const starting = startService(config, log);
  const reload = () => {
    log.info('SIGHUP: reading the certificate again.');
    starting.then((service) => service.reloadCertificate()).catch(() => undefined);
  };
  closeOnSignals(
    drainTimeoutMs,
    async ({ err, signal }) => {
      if (err) log.fatal({ err }, 'ending after an error that nothing caught');
      else log.info(`${signal ?? 'Asked to end'}: finishing what is under way.`);
      const service = await starting.catch(() => null);
      await service?.close();
      log.info('Stopped.');
    },
    // From a terminal, SIGHUP says that it was closed.
    config.mqttsListen !== null && !hasTerminal() ? reload : null,
  );
  const { addresses } = await starting;
  log.info({ ...addresses }, 'Ready.');
  // Where the database is a server of its own, so is the log: lines for people would break it.
  if (isTerminal || config.databaseUrl === null)
    for (const line of describeReady(addresses)) console.log(line);
}

function hasTerminal(): boolean {
  return [0, 1, 2].some((stream) => isatty(stream));
}

/** Which part to run; null where the answer has been printed already. */
function readArguments(args: string[]): Role | null {
  const { values, positionals } = parse(args);
  if (values.help) return say(helpText());
  if (values.version) return say(version);
  const [part, ...more] = positionals;
  if (more.length > 0) throw new StartError(`Not understood: ${more.join(' ')}. Try --help.`);
  if (part === undefined && values.id === undefined) return { name: 'all' };
  if (part === 'api' && values.id === undefined) return { name: 'api' };
  if (part === 'connector') {
    const id = Number(values.id);
    if (Number.isInteger(id) && id > 0) return { name: 'connector', id };
    throw new StartError('connector: expected --id with the number of a connector in config/.');
  }
  throw new StartError(`Not understood: ${args.join(' ')}. Try --help.`);
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        id: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new StartError(error instanceof Error ? error.message : String(error));
  }
}

function say(text: string): null {
  console.log(text);
  return null;
}
