/** A folder, or some of its files, and what they may import: lint/modules.ts. */
export type Module = {
  files: string;
  /** Folders and files that it may import, as its own files write them. */
  may: string[];
  /** Imports that begin with one of these are refused unless `may` allows them. */
  from?: string[];
  /** Libraries that it must not import. */
  not?: string[];
  /** The only libraries that it may import: it is pure, and uses no clock and no process. */
  only?: string[];
  /** The neighbouring files that a pure module may import; absent: all. */
  beside?: string[];
  why: string;
};
