import { DomainError } from '../errors.ts';
import type { ImportCandidate } from './candidate.ts';
import { readCsvLine, readHeader, type Columns } from './csv.ts';
import { csvType } from '../lib/media-types.ts';
import type { Line } from './lines.ts';
import { readJsonLine } from './ndjson.ts';

/** What a line is: a measurement, why it is none, or null where there is nothing to read in it. */
export type LineRead = ImportCandidate | string | null;

/** Reads the lines of one body in their order. Throws `invalid-input` where nothing of it could be read. */
export type LineReader = {
  read(line: Line): LineRead;
  /** To be asked once no line is left. */
  end(): void;
};

const tooLong = 'invalid: the line is longer than 16 KiB';

/** By media type. */
export function createLineReader(type: string): LineReader {
  return type === csvType ? csvReader() : jsonReader();
}

function jsonReader(): LineReader {
  return {
    read({ number, text }) {
      if (text === null) return tooLong;
      return text.trim() === '' ? null : readJsonLine(text, number);
    },
    end() {},
  };
}

function csvReader(): LineReader {
  let columns: Columns | null = null;
  return {
    read({ number, text }) {
      if (columns === null) {
        const header = readHeader(text ?? '');
        if (typeof header === 'string') throw noHeader(header);
        columns = header;
        return null;
      }
      if (text === null) return tooLong;
      return text === '' ? null : readCsvLine(text, number, columns);
    },
    end() {
      if (columns === null) throw noHeader('nothing was sent');
    },
  };
}

function noHeader(message: string): DomainError {
  const detail =
    'The first line of CSV names the columns: deviceAuthUuid, sId, ts, and val or lat and long, in any order.';
  return new DomainError('invalid-input', detail, { problems: [{ path: '/1', message }] });
}
