/** A folder, or some files of one, and what they may import: lint/modules.ts. */
export type Module = {
  files: string;
  /** Folders and files that it may import, as its own files write them. */
  may: string[];
  /** What it imports of a further folder is refused: all that begins like this. */
  from?: string[];
  /** Libraries that it must not know. */
  not?: string[];
  /** It imports no other library than these: it is pure, and has no clock and no process. */
  only?: string[];
  /** Of the files beside it a pure one imports these; all, where nothing is said. */
  beside?: string[];
  why: string;
};
