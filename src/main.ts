import { isatty } from 'node:tty';
import { type Config, helpText, loadConfig, type Role } from './config/config.ts';
import { createLog } from './log/log.ts';
import { readArguments as parseArguments, UsageError } from './cli/command-line.ts';
import { tuneCollector } from './process/v8.ts';
import { closeOnSignals, describeReady } from './process/signals.ts';
import { describeStartError, mayPass, StartError } from './start-error.ts';
import { version } from './version.ts';

/** A later version has migrated the database and does not let this one write (docs/upgrading.md). */
const movedExitCode = 3;
const movedStopMs = 2_000;

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
  const { role, logLevel: level } = config;
  const connectorId = role.name === 'connector' ? role.id : undefined;
  const serviceLog = createLog({ level, isTerminal, role: role.name, connectorId });
  const log = serviceLog.child({ component: 'service' });
  // Imported only now, so that a wrong setting or --help is answered at once.
  const { startService } = await import('./service.ts');
  // If it is asked to stop while starting, the service first completes its start and then stops in order. It does not
  // wait for a database that is away.
  let isMoved = false;
  const stopping = new AbortController();
  const starting = startService(config, serviceLog, {
    signal: stopping.signal,
    onMoved(lines) {
      isMoved = true;
      log.fatal({ event: 'service.superseded' }, lines.join(' '));
      ending.end(movedExitCode);
    },
  });
  const reload = () => {
    log.info({ event: 'service.reload-requested' }, 'SIGHUP: reloading the certificate.');
    starting.then((service) => service.reloadCertificate()).catch(() => undefined);
  };
  let isUp = false;
  const ending = closeOnSignals({
    longestMs: config.stopTimeoutMs,
    log,
    async close({ err, signal }) {
      const sinceMs = performance.now();
      // A process that failed must not keep serving, and one that was never ready need not report that it no longer is.
      const delayMs = err || isMoved || !isUp ? 0 : config.drainDelayMs;
      if (err) log.fatal({ event: 'service.crashed', err }, 'Exiting after an uncaught error.');
      else
        log.info(
          { event: 'stop.requested', signal, delayMs },
          `${signal ?? 'Asked to end'}: ${describeStop(delayMs)}`,
        );
      stopping.abort();
      const service = await starting.catch(() => null);
      // The tables are gone, so there is nowhere to store work under way.
      const allowedMs = isMoved ? movedStopMs : config.stopTimeoutMs;
      const totalMs = allowedMs - (performance.now() - sinceMs);
      const unfinished = (await service?.close({ delayMs, totalMs })) ?? [];
      const rest = unfinished.length > 0 ? ` Not finished: ${unfinished.join(', ')}.` : '';
      log.info({ event: 'stop.finished', unfinished }, `Stopped.${rest}`);
      return unfinished.length === 0;
    },
    // From a terminal, SIGHUP means that the terminal was closed.
    onHangUp: config.mqttsListen !== null && !hasTerminal() ? reload : null,
  });
  const started = await starting.catch((error: unknown) => {
    if (stopping.signal.aborted && mayPass(error)) return null;
    throw error;
  });
  // It was asked to stop while it waited for the database; `ending` ends the process.
  if (started === null) return;
  const { addresses } = started;
  isUp = true;
  log.info({ event: 'service.ready', ...addresses }, 'Ready.');
  // With an external database something probably collects the log, and lines for people would break it.
  if (isTerminal || config.databaseUrl === null)
    for (const line of describeReady(addresses, config.console.enabled)) console.log(line);
}

// A function, not a constant: top-level constants below the `await` at the start are not initialized yet.
function describeStop(delayMs: number): string {
  return delayMs > 0
    ? `no longer ready; serving for another ${delayMs} ms, then finishing work in progress.`
    : 'finishing work in progress.';
}

function hasTerminal(): boolean {
  return [0, 1, 2].some((stream) => isatty(stream));
}

/** The part to run; null if the arguments were answered already. */
function readArguments(args: string[]): Role | null {
  const { values, positionals } = parse(args);
  if (values.help) return say(helpText());
  if (values.version) return say(version);
  const [part, ...more] = positionals;
  if (more.length > 0) throw new StartError(`Unexpected arguments: ${more.join(' ')}. Try --help.`);
  if (part === undefined && values.id === undefined) return { name: 'all' };
  if (part === 'api' && values.id === undefined) return { name: 'api' };
  if (part === 'connector') {
    const id = Number(values.id);
    if (Number.isInteger(id) && id > 0) return { name: 'connector', id };
    throw new StartError('connector: expected --id with the id of a connector in config/.');
  }
  throw new StartError(`Unexpected arguments: ${args.join(' ')}. Try --help.`);
}

function parse(args: string[]) {
  try {
    return parseArguments({
      args,
      allowPositionals: true,
      options: {
        id: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw error instanceof UsageError ? new StartError(`${error.message} Try --help.`) : error;
  }
}

function say(text: string): null {
  console.log(text);
  return null;
}
