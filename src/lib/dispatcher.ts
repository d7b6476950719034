type DispatcherOptions<Job extends { lane: string }> = {
  /** How many jobs this process does at once, by lane. */
  places: Places<Job>;
  /** Claims due jobs for this process: in each lane at most as many as are `free`. */
  claim: (free: Places<Job>, underWay: readonly Job[]) => Promise<readonly Job[]>;
  /** Makes one attempt and stores its outcome. */
  work: (job: Job) => Promise<void>;
  /** How often it looks for due jobs without a call of `look`. */
  pollIntervalMs: number;
  onError: (error: unknown) => void;
};

type Places<Job extends { lane: string }> = Partial<Record<Job['lane'], number>>;

type Dispatcher = {
  /** Call it when something may be due. */
  look: () => void;
  /** Waits for jobs under way and starts no more. */
  close: () => Promise<void>;
};

/**
 * Does the jobs that become due in a table, until it is closed. A job that ends makes room for the next one at once.
 * Each lane has its own places, so jobs that hang do not delay the other lanes.
 */
export function startDispatcher<Job extends { lane: string }>(
  options: DispatcherOptions<Job>,
): Dispatcher {
  const { places, claim, work, pollIntervalMs, onError } = options;
  const underWay = new Map<Job, Promise<void>>();
  let looking: Promise<void> | null = null;
  let again = false;
  let closed = false;

  function begin(job: Job): void {
    const ended = work(job)
      .catch(onError)
      .finally(() => {
        underWay.delete(job);
        look();
      });
    underWay.set(job, ended);
  }

  function freePlaces(): Places<Job> {
    const free = { ...places };
    for (const job of underWay.keys()) {
      const lane: Job['lane'] = job.lane;
      free[lane] = (free[lane] ?? 0) - 1;
    }
    return free;
  }

  const isAnyFree = (free: Places<Job>) =>
    Object.values<number | undefined>(free).some((n = 0) => n > 0);

  async function fill(): Promise<void> {
    do {
      again = false;
      const free = freePlaces();
      if (!isAnyFree(free)) return;
      for (const job of await claim(free, [...underWay.keys()])) begin(job);
    } while (again && !closed);
  }

  /** Only one query runs at a time; a call during it makes another one follow. */
  function look(): void {
    again = true;
    if (closed || looking) return;
    looking = fill()
      .catch(onError)
      .finally(() => {
        looking = null;
        // Somebody called `look` after the last query and before this line.
        if (again && isAnyFree(freePlaces())) look();
      });
  }

  const timer = setInterval(look, pollIntervalMs);
  look();
  return {
    look,
    async close() {
      closed = true;
      clearInterval(timer);
      await looking;
      await Promise.all(underWay.values());
    },
  };
}
