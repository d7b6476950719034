// Values that wait to be sent, in a file.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';

/** One JSON text a line, the oldest first. It survives a restart, and never exceeds `maxBytes`. */
export class Unsent {
  /** @type {string[]} */
  #lines = [];
  #bytes = 0;
  #given = 0;
  #path;
  #maxBytes;

  /** @param {string} path @param {number} maxBytes */
  constructor(path, maxBytes) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    closeSync(openSync(path, 'a'));
    // What follows the last line's end was cut off while it was written.
    this.#replace(readFileSync(path, 'utf8').split('\n').slice(0, -1));
  }

  /** Keeps one more value. Without room, it drops the oldest ones. @param {unknown} value */
  add(value) {
    const line = JSON.stringify(value);
    while (this.#bytes + line.length + 1 > this.#maxBytes) {
      console.log('no room, the oldest values are lost');
      this.#drop(50);
    }
    write(this.#path, 'a', `${line}\n`);
    this.#lines.push(line);
    this.#bytes += line.length + 1;
  }

  /** The oldest values, at most `most`, as a JSON array; null if there is none. @param {number} most */
  oldest(most) {
    const lines = this.#lines.slice(0, most);
    this.#given = lines.length;
    return lines.length === 0 ? null : `[${lines.join()}]`;
  }

  /** Drops what oldest() returned. Call it only once the service has acknowledged that. */
  forget() {
    this.#drop(this.#given);
  }

  /** @param {number} count */
  #drop(count) {
    this.#given = Math.max(0, this.#given - count);
    this.#replace(this.#lines.slice(count));
  }

  /** Writes a copy and renames it: after a power cut one of the two files is there. @param {string[]} lines */
  #replace(lines) {
    const text = lines.map((line) => `${line}\n`).join('');
    write(`${this.#path}.new`, 'w', text);
    renameSync(`${this.#path}.new`, this.#path);
    this.#lines = lines;
    this.#bytes = text.length;
  }
}

/** @param {string} path @param {'a' | 'w'} flags @param {string} text */
function write(path, flags, text) {
  const file = openSync(path, flags);
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
}
