/** The parts of autocannon that the bench uses; the package has no types of its own. */
declare module 'autocannon' {
  type Options = {
    url: string;
    connections: number;
    duration: number;
    /** Milliseconds between two checks of the duration. */
    sampleInt: number;
    requests: { method: 'GET'; path: string; headers: Record<string, string> }[];
  };
  type Result = {
    latency: { p50: number; p99: number };
    non2xx: number;
    errors: number;
    timeouts: number;
  };
  type Run = Promise<Result> & { on: (event: 'response', listener: () => void) => unknown };
  export default function autocannon(options: Options): Run;
}
