import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';

/** `bytes` is absent for a directory. */
type Entry = { path: string; bytes?: number };

/** A cluster's databases are much alike: a window that holds all of them compresses it to a tenth. */
const windowLog = 27;

/**
 * Packs a directory into one file: a line of JSON that lists the entries, then their contents in order, compressed as
 * a whole. Does not keep owners and modes.
 */
export async function pack(dir: string, file: string): Promise<void> {
  const entries: Entry[] = [];
  const contents: Buffer[] = [];
  const found = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = found.map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }));
  for (const { entry, path } of paths.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const relative = path.slice(dir.length + 1);
    if (entry.isDirectory()) {
      entries.push({ path: relative });
      continue;
    }
    const content = await readFile(path);
    entries.push({ path: relative, bytes: content.length });
    contents.push(content);
  }
  const whole = Buffer.concat([Buffer.from(`${JSON.stringify(entries)}\n`), ...contents]);
  const params = {
    [constants.ZSTD_c_compressionLevel]: 19,
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
    [constants.ZSTD_c_windowLog]: windowLog,
  };
  await writeFile(file, await promisify(zstdCompress)(whole, { params }));
}

/** Creates `dir` and unpacks a packed directory into it. */
export async function unpack(file: string, dir: string): Promise<void> {
  const params = { [constants.ZSTD_d_windowLogMax]: windowLog };
  const whole = await promisify(zstdDecompress)(await readFile(file), { params });
  const head = whole.indexOf('\n');
  let at = head + 1;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  for (const { path, bytes } of JSON.parse(whole.toString('utf8', 0, head)) as Entry[]) {
    const target = join(dir, path);
    if (bytes === undefined) {
      await mkdir(target, { recursive: true, mode: 0o700 });
      continue;
    }
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await writeFile(target, whole.subarray(at, at + bytes), { mode: 0o600 });
    at += bytes;
  }
}
