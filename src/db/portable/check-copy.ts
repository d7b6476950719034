import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { StartError } from '../../start-error.ts';
import { refuseLink } from '../backup/private-files.ts';
import type { PortableManifest } from './manifest.ts';
import { requireKnownMigrations } from './migrations.ts';

/** Throws a StartError for a copy that is not whole, or that this version cannot restore. */
export async function checkPortableCopy(dir: string, manifest: PortableManifest): Promise<void> {
  await requireKnownMigrations(manifest.migrations, {
    of: dir,
    hint: `It was made by version ${manifest.programVersion}: restore it with that version, or with a later one than this.`,
  });
  for (const { file, bytes, sha256 } of manifest.tables) {
    await refuseLink(join(dir, file));
    const found = await stat(join(dir, file)).catch(() => null);
    if (found?.size !== bytes || (await digest(join(dir, file))) !== sha256)
      throw new StartError(
        `${join(dir, file)}: is missing, cut short or changed; the copy is not restored.`,
      );
  }
}

async function digest(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: 2 ** 20 }), hash);
  return hash.digest('hex');
}
