/** The part of autocannon that the bench calls; the package has no types of its own. */
declare module 'autocannon' {
  type Options = {
    url: string;
    connections: number;
    duration: number;
    requests: { method: 'GET'; path: string; headers: Record<string, string> }[];
  };
  type Result = {
    duration: number;
    requests: { total: number };
    latency: { p50: number; p99: number };
    non2xx: number;
    errors: number;
    timeouts: number;
  };
  export default function autocannon(options: Options): Promise<Result>;
}
