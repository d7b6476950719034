import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { manifestName, type PageManifest } from '../manifest.ts';
import type { BuiltFile } from './bundle.ts';

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

/** Writes the files and the manifest into a folder that appears complete or not at all. */
export async function writeBuild(
  { dir, hash, mode }: { dir: string; hash: string; mode: number },
  files: BuiltFile[],
): Promise<string> {
  const made = join(dir, `.${hash}-${process.pid}`);
  const target = join(dir, hash);
  await mkdir(made, { recursive: true, mode });
  await Promise.all(files.map((file) => writeFileThrice(made, file)));
  const manifest: PageManifest = { files: files.map(({ name, type }) => ({ name, type })) };
  await writeFile(join(made, manifestName), JSON.stringify(manifest));
  await rm(target, { recursive: true, force: true });
  await rename(made, target);
  await removeOthers(dir, hash);
  return target;
}

/** Uncompressed and compressed: Chromium accepts brotli over HTTPS only, and gzip on a plain LAN. */
async function writeFileThrice(dir: string, { name, content }: BuiltFile): Promise<void> {
  const bytes = Buffer.from(content);
  const path = join(dir, name);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 9,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  const [brotli, gzipped] = await Promise.all([
    compressBrotli(bytes, { params }),
    compressGzip(bytes, { level: 9 }),
  ]);
  await Promise.all([
    writeFile(path, bytes),
    writeFile(`${path}.br`, brotli),
    writeFile(`${path}.gz`, gzipped),
  ]);
}

/** Builds of earlier sources to keep: a service that was started with one of them may still serve it. */
const keptBuilds = 10;

/** Removes all but the newest builds, and incomplete ones. */
async function removeOthers(dir: string, hash: string): Promise<void> {
  const others = (await readdir(dir)).filter((name) => name !== hash);
  const aged = await Promise.all(
    others.map(async (name) => {
      const found = await stat(join(dir, name)).catch(() => null);
      return { name, madeMs: name.startsWith('.') ? 0 : (found?.mtimeMs ?? 0) };
    }),
  );
  aged.sort((a, b) => b.madeMs - a.madeMs);
  const kept = aged.filter(({ madeMs }) => madeMs > 0).slice(0, keptBuilds);
  for (const each of aged)
    if (!kept.includes(each)) await rm(join(dir, each.name), { recursive: true, force: true });
}

/** Whether nobody else can have put a script into it: it is a folder of this user that only this user can write to. */
export async function isOwnDir(dir: string): Promise<boolean> {
  const found = await stat(dir).catch(() => null);
  if (!found?.isDirectory()) return false;
  return found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}
