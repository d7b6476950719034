import type { Config } from '../../config/config.ts';
import { backUpPortable } from '../../db/portable/back-up-portable.ts';
import type { CopyOptions } from '../../db/portable/write-copy.ts';
import { reachUnchanged, requireDatabase } from '../account/reach-database.ts';
import { createScreen } from '../simulate/screen.ts';
import { untilInterrupted } from './interrupt.ts';
import { showRows, summarise } from './progress.ts';

/** `npm run backup -- --portable`: gives the exit status. */
export async function backUpPortably(config: Config, target: string): Promise<number> {
  await requireDatabase(config);
  const screen = createScreen(process.stdout);
  const startMs = performance.now();
  const { manifest, hasSecret } = await untilInterrupted('Nothing is left of the copy.', (signal) =>
    copy(config, target, { onRows: showRows(screen), signal }),
  );
  const seconds = (performance.now() - startMs) / 1_000;
  screen.say(`Copied ${manifest.source}: ${summarise(manifest, seconds)}.`);
  screen.say(
    hasSecret
      ? 'The secret is in it: keep it as safe as the data.'
      : 'The secret is not in it: keep what SECRET or SECRET_FILE gives the service with it.',
  );
  const into = 'DATA_DIR=<new directory> or DATABASE_URL=<empty database>';
  screen.say(`Restore it with: ${into} npm run restore -- ${target}`);
  return 0;
}

async function copy(config: Config, target: string, options: CopyOptions) {
  const { connectionString, release } = await reachUnchanged(config);
  try {
    const { dataDir } = config;
    return await backUpPortable({ connectionString, dataDir }, target, options);
  } finally {
    await release();
  }
}
