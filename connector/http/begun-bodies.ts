/** A body that has begun and not ended. */
type Begun = { bytes: number; giveUp: () => void };

export type BegunBodies = {
  /** `giveUp`: its memory is needed for others. */
  begin(giveUp: () => void): BegunBody;
  bytes(): number;
};

export type BegunBody = {
  /** So many more bytes of it have come. */
  add(bytes: number): void;
  end(): void;
};

/**
 * Bodies that have begun and not ended may take so many bytes together; beyond, the one that began first is
 * given up. A body that comes at once is never that one, however many never end.
 */
export function createBegunBodies(maxBytes: number): BegunBodies {
  const begun = new Set<Begun>();
  let bytes = 0;

  function end(one: Begun): void {
    if (begun.delete(one)) bytes -= one.bytes;
  }

  return {
    begin(giveUp) {
      const one: Begun = { bytes: 0, giveUp };
      return {
        add(more) {
          begun.add(one);
          one.bytes += more;
          bytes += more;
          for (const first of begun) {
            if (bytes <= maxBytes) return;
            end(first);
            first.giveUp();
          }
        },
        end: () => end(one),
      };
    },
    bytes: () => bytes,
  };
}
